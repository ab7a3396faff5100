package memory

import (
	"cmp"
	"fmt"
	"slices"
)

// Verify checks that p is valid: offsets are aligned and within the arena, and no two blocks that are live at the same
// step overlap. It shares no code with Place.
func (p *Plan) Verify() error {
	if len(p.Offsets) != len(p.Blocks) {
		return fmt.Errorf("memory: %d offsets for %d blocks", len(p.Offsets), len(p.Blocks))
	}
	if err := checkBlocks(p.Blocks); err != nil {
		return err
	}
	for i, b := range p.Blocks {
		off := p.Offsets[i]
		if off < 0 || off%Align != 0 || b.Bytes > p.Size-off {
			return fmt.Errorf("memory: block %q: %d bytes at offset %d of an arena of %d", b.Name, b.Bytes, off, p.Size)
		}
	}
	return p.checkOverlaps()
}

// checkOverlaps iterates over steps with the live blocks ordered by offset: a new block must not overlap its
// neighbours.
func (p *Plan) checkOverlaps() error {
	var live []int
	position := func(i int) int {
		at, _ := slices.BinarySearchFunc(live, p.Offsets[i],
			func(j int, off int64) int { return cmp.Compare(p.Offsets[j], off) })
		return at
	}
	// Live blocks do not overlap, by induction, so that only neighbours have to be compared.
	for _, e := range p.events() {
		at := position(e.block)
		if !e.birth {
			live = slices.Delete(live, at, at+1)
			continue
		}
		if at > 0 && p.overlap(live[at-1], e.block) {
			return p.clash(live[at-1], e.block)
		}
		if at < len(live) && p.overlap(e.block, live[at]) {
			return p.clash(live[at], e.block)
		}
		live = slices.Insert(live, at, e.block)
	}
	return nil
}

// overlap reports whether the block at the lower offset overlaps the other one.
func (p *Plan) overlap(low, high int) bool {
	return p.Offsets[low]+p.Blocks[low].Bytes > p.Offsets[high]
}

func (p *Plan) clash(i, j int) error {
	a, b := p.Blocks[i], p.Blocks[j]
	return fmt.Errorf("memory: blocks %q and %q overlap at step %d: %d bytes at offset %d, %d bytes at offset %d",
		a.Name, b.Name, max(a.First, b.First), a.Bytes, p.Offsets[i], b.Bytes, p.Offsets[j])
}

// An event is the birth of a block, or its end after its last step.
type event struct {
	step, block int
	birth       bool
}

// events are in the order of time; at one step, deaths come before births.
func (p *Plan) events() []event {
	var es []event
	for i, b := range p.Blocks {
		if b.Bytes > 0 {
			es = append(es, event{b.First, i, true}, event{b.Last + 1, i, false})
		}
	}
	slices.SortStableFunc(es, func(a, b event) int {
		switch {
		case a.step != b.step:
			return cmp.Compare(a.step, b.step)
		case a.birth == b.birth:
			return 0
		case a.birth:
			return 1
		}
		return -1
	})
	return es
}
