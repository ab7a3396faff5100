package memory

import (
	"cmp"
	"fmt"
	"slices"
)

// A Timeline is the live memory of a run, step by step, without alignment and fragmentation of a Plan.
type Timeline struct {
	Blocks []Block
	Live   []Usage // at each step
	Peak   int64   // maximum of live bytes at one step
	Peaks  []int   // the steps of the peak
}

// A Usage is bytes by kind.
type Usage [kinds]int64

// Total is the bytes of all kinds.
func (u Usage) Total() int64 {
	var n int64
	for _, b := range u {
		n += b
	}
	return n
}

// NewTimeline returns the timeline of a run with this number of steps.
func NewTimeline(blocks []Block, steps int) (*Timeline, error) {
	if err := checkBlocks(blocks); err != nil {
		return nil, err
	}
	t := &Timeline{Blocks: slices.Clone(blocks), Live: make([]Usage, max(0, steps))}
	for _, b := range blocks {
		if b.Last >= steps {
			return nil, fmt.Errorf("memory: block %q: lives until step %d of %d", b.Name, b.Last, steps)
		}
		// Differences first, whose sums are computed below: in the time of blocks plus steps.
		t.Live[b.First][b.Kind] += b.Bytes
		if b.Last+1 < steps {
			t.Live[b.Last+1][b.Kind] -= b.Bytes
		}
	}
	for i := 1; i < steps; i++ {
		for k := range kinds {
			t.Live[i][k] += t.Live[i-1][k]
		}
	}
	t.findPeaks()
	return t, nil
}

func (t *Timeline) findPeaks() {
	for i, u := range t.Live {
		n := u.Total()
		if n > t.Peak {
			t.Peak, t.Peaks = n, nil
		}
		if n == t.Peak && n > 0 {
			t.Peaks = append(t.Peaks, i)
		}
	}
}

// At returns the live blocks at a step, largest first.
func (t *Timeline) At(step int) []Block {
	var live []Block
	for _, b := range t.Blocks {
		if b.Bytes > 0 && b.First <= step && step <= b.Last {
			live = append(live, b)
		}
	}
	slices.SortStableFunc(live, func(a, b Block) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return live
}
