package memory

import (
	"cmp"
	"fmt"
	"slices"
)

// A Timeline is the memory of a run, step by step. It counts what blocks need; where they
// lie, and what that costs, is a Plan's to say.
type Timeline struct {
	Blocks []Block
	Alive  []Usage // at each step
	Peak   int64   // the most bytes alive at one step
	Peaks  []int   // the steps at which so many are alive
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

// NewTimeline follows blocks through a run of so many steps.
func NewTimeline(blocks []Block, steps int) (*Timeline, error) {
	if err := check(blocks); err != nil {
		return nil, err
	}
	t := &Timeline{Blocks: slices.Clone(blocks), Alive: make([]Usage, max(0, steps))}
	for _, b := range blocks {
		if b.Last >= steps {
			return nil, fmt.Errorf("memory: block %q: lives until step %d of %d", b.Name, b.Last, steps)
		}
		t.Alive[b.First][b.Kind] += b.Bytes
		if b.Last+1 < steps {
			t.Alive[b.Last+1][b.Kind] -= b.Bytes
		}
	}
	for i := 1; i < steps; i++ {
		for k := range kinds {
			t.Alive[i][k] += t.Alive[i-1][k]
		}
	}
	t.findPeaks()
	return t, nil
}

func (t *Timeline) findPeaks() {
	for i, u := range t.Alive {
		n := u.Total()
		if n > t.Peak {
			t.Peak, t.Peaks = n, nil
		}
		if n == t.Peak && n > 0 {
			t.Peaks = append(t.Peaks, i)
		}
	}
}

// At is the blocks that take memory at a step, the largest first.
func (t *Timeline) At(step int) []Block {
	var alive []Block
	for _, b := range t.Blocks {
		if b.Bytes > 0 && b.First <= step && step <= b.Last {
			alive = append(alive, b)
		}
	}
	slices.SortStableFunc(alive, func(a, b Block) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return alive
}
