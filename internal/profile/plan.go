package profile

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/memory"
)

// A plan is the memory plan of a graph by value.
type plan struct {
	usage *engine.Usage
	line  *memory.Timeline // its blocks are values, the latest ones of each block of memory
}

// newPlan divides the blocks of a plan into the values that use them one after the other.
func newPlan(u *engine.Usage, phases []string) (p *plan, err error) {
	byBlock := make([][]engine.Lifetime, len(u.Plan.Blocks))
	for _, v := range u.Values {
		byBlock[v.Block] = append(byBlock[v.Block], v)
	}
	var pieces []memory.Block
	for i, b := range u.Plan.Blocks {
		pieces = append(pieces, splitBlock(b, byBlock[i], phases)...)
	}
	p = &plan{usage: u}
	p.line, err = memory.NewTimeline(pieces, len(u.Steps))
	return p, err
}

// splitBlock returns the values of block b, each from the step that computes it to that of the next one. What the
// backward pass computes are gradients.
func splitBlock(b memory.Block, values []engine.Lifetime, phases []string) []memory.Block {
	if len(values) == 0 {
		return []memory.Block{b}
	}
	slices.SortFunc(values, func(x, y engine.Lifetime) int { return cmp.Compare(x.First, y.First) })
	var pieces []memory.Block
	for k, v := range values {
		piece := b
		piece.Name = v.Name
		if k > 0 {
			piece.First = v.First
		}
		if k+1 < len(values) {
			piece.Last = values[k+1].First - 1
		}
		// Inputs exist before the first step.
		if phase := phases[max(v.First, 0)]; b.Kind == memory.Activation &&
			(phase == string(grad.Backward) || phase == string(grad.Update)) {
			piece.Kind = memory.Gradient
		}
		if piece.Last >= piece.First {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// A Value is live memory at the peak.
type Value struct {
	Name  string `json:"name"`
	Node  string `json:"node"` // that computes it, or whose scratch memory it is
	Op    string `json:"op"`
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
}

// A Peak is the maximum of live memory in the arena.
type Peak struct {
	Node   string           `json:"node"` // the first one at the peak
	Bytes  int64            `json:"bytes"`
	Arena  int64            `json:"arena_bytes"` // with alignment and gaps
	ByKind map[string]int64 `json:"by_kind"`
	Values []Value          `json:"values"` // the largest first
}

// peak returns the maximum of live memory, nil if there is none.
func (p *plan) peak() *Peak {
	if len(p.line.Peaks) == 0 {
		return nil
	}
	at := p.line.Peaks[0]
	out := &Peak{Node: p.usage.Steps[at].Node, Bytes: p.line.Peak, Arena: p.usage.Plan.Size,
		ByKind: byKind(p.line.Live[at])}
	for _, b := range p.line.At(at) {
		st := p.usage.Steps[b.First]
		v := Value{Name: b.Name, Node: st.Node, Op: st.Op, Kind: b.Kind.String(), Bytes: b.Bytes}
		if b.Kind == memory.Scratch {
			// Scratch memory belongs to a node, not to a value.
			v.Name = ""
		}
		out.Values = append(out.Values, v)
	}
	return out
}

// byKind returns the kinds with memory by name.
func byKind(u memory.Usage) map[string]int64 {
	out := map[string]int64{}
	for k, n := range u {
		if n > 0 {
			out[memory.Kind(k).String()] = n
		}
	}
	return out
}

// A Waste is memory of the arena that no value needs. Areas are bytes times nodes: 1 MB from one node to the tenth is
// 10 MB-nodes.
type Waste struct {
	Allocated int64  `json:"allocated"`     // area of the lifetimes of the planner
	Unused    int64  `json:"unused"`        // area of those without a value that is needed
	Stale     int64  `json:"stale"`         // area of values outside the arena after their last use
	Late      []Late `json:"released_late"` // blocks that live longer than the last use of their values and a node
	Gaps      int64  `json:"gap_bytes"`     // of the arena at its peak, by alignment and fragmentation
}

// InUse is the fraction of the allocated area that values need.
func (w *Waste) InUse() float64 {
	if w.Allocated == 0 {
		return 1
	}
	return 1 - float64(w.Unused)/float64(w.Allocated)
}

// A Late is a value whose memory is released late.
type Late struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Nodes int    `json:"nodes"` // from its last use to its release
}

// waste compares the lifetimes of blocks with the uses of their values.
func (p *plan) waste() *Waste {
	byBlock := make([][]engine.Lifetime, len(p.usage.Plan.Blocks))
	for _, v := range p.usage.Values {
		byBlock[v.Block] = append(byBlock[v.Block], v)
	}
	w := &Waste{Gaps: p.usage.Plan.Size - p.line.Peak, Late: []Late{}}
	for i, b := range p.usage.Plan.Blocks {
		area := b.Bytes * int64(b.Last-b.First+1)
		w.Allocated += area
		if len(byBlock[i]) == 0 {
			continue // scratch memory
		}
		w.Unused += area - neededArea(byBlock[i])
		last := slices.MaxFunc(byBlock[i], func(x, y engine.Lifetime) int { return cmp.Compare(x.Last, y.Last) })
		if late := b.Last - last.Last; late > 1 {
			w.Late = append(w.Late, Late{Name: last.Name, Bytes: b.Bytes, Nodes: late})
		}
	}
	slices.SortFunc(w.Late, func(x, y Late) int {
		return cmp.Or(cmp.Compare(y.Bytes*int64(y.Nodes), x.Bytes*int64(x.Nodes)), cmp.Compare(x.Name, y.Name))
	})
	return w
}

// neededArea is the area of the values of one block: at each node the size of the largest one in use.
func neededArea(values []engine.Lifetime) (area int64) {
	var cuts []int
	for _, v := range values {
		// Between two cuts the set of values in use is the same.
		cuts = append(cuts, v.First, v.Last+1)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for k := range cuts[:len(cuts)-1] {
		var bytes int64
		for _, v := range values {
			if v.First <= cuts[k] && cuts[k] <= v.Last {
				bytes = max(bytes, v.Bytes)
			}
		}
		area += bytes * int64(cuts[k+1]-cuts[k])
	}
	return area
}
