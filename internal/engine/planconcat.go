package engine

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// concatReach is the number of steps before a Concat in which its inputs may be computed in its output, so that
// planning takes time in proportion to the graph.
const concatReach = 1000

// A bufferMove is a buffer that is in another one, at an offset.
type bufferMove struct {
	buffer, to int
	at         int64
}

// concatenate lets steps compute the inputs of a Concat in the memory of its output, if they are contiguous there and
// nothing else reads them later. The output's lifetime begins with the first of them, which must not raise the peak.
func (pl *planner) concatenate() {
	var live []int64
	var peak int64
	var moves []bufferMove
	for i, s := range pl.prog.steps {
		if pl.modes[i] != placed || !s.is("Concat") || !pl.joins(s) {
			continue
		}
		// Once, for the first Concat that can be joined: the peak of a graph without any is not needed.
		if live == nil {
			live = pl.live()
			peak = slices.Max(live)
		}
		moves = append(moves, pl.join(i, s, live, peak)...)
	}
	pl.move(moves)
}

// move updates the slots whose buffers move. A buffer moves into that of a later step, which may move, too.
func (pl *planner) move(moves []bufferMove) {
	last := make(map[int]bufferMove, len(moves))
	// From the last: where a buffer ends up follows from where the Concat that it moves into does. One pass over the
	// slots instead of one for each Concat, which took n² time in a chain of n.
	for _, m := range slices.Backward(moves) {
		if next, ok := last[m.to]; ok {
			m.to, m.at = next.to, m.at+next.at
		}
		last[m.buffer] = m
	}
	if len(last) == 0 {
		return
	}
	for slot, h := range pl.buffer {
		if m, ok := last[h]; ok {
			pl.buffer[slot] = m.to
			pl.offset[slot] += m.at
		}
	}
}

// joins reports whether the inputs of a Concat are contiguous in its output, and the output has a buffer.
func (pl *planner) joins(s *step) bool {
	o := s.out[0]
	out := pl.values[o]
	axis, err := op.Axis(s.Int("axis", 0), len(out.Shape))
	if err != nil || pl.buffer[o] != o || pl.prog.slots[o].keep || out.DType.Bits()%8 != 0 {
		return false
	}
	// With an outer axis, an input is in several parts of the output.
	for _, n := range out.Shape[:axis] {
		if n != 1 {
			return false
		}
	}
	return true
}

// join is the moves of inputs of Concat i into its output.
func (pl *planner) join(i int, s *step, live []int64, peak int64) []bufferMove {
	o, at := s.out[0], int64(0)
	var moves []bufferMove
	taken, first := map[int]bool{}, i
	for _, j := range s.in {
		h, n := pl.buffer[j], pl.values[j].Bytes()
		// A value that is there twice is copied the second time. Kernels get aligned tensors.
		if !taken[h] && at%ir.Alignment == 0 && pl.joinable(i, h, n) {
			taken[h] = true
			moves = append(moves, bufferMove{h, o, at})
			first = min(first, pl.firstStep[h])
		}
		at += n
	}
	changed := pl.joined(i, first, at, moves)
	// The arena must not grow: copies are cheaper than memory.
	for k, n := range changed {
		if live[first+k]+n > peak {
			return nil
		}
	}
	for k, n := range changed {
		live[first+k] += n
	}
	pl.firstStep[o] = first
	return moves
}

// joinable reports whether buffer h can move into that of the output of step i: it has n bytes, is computed not long
// before, and is read there for the last time.
func (pl *planner) joinable(i, h int, n int64) bool {
	return h != absent && n > 0 && pl.lastStep[h] == i && i-pl.firstStep[h] <= concatReach &&
		pl.prog.slots[h].constant == nil && pl.values[h].Bytes() == n
}

// joined is the change of the live bytes of the steps first to i if buffers move into one of n bytes that begins with
// step first.
func (pl *planner) joined(i, first int, n int64, moves []bufferMove) []int64 {
	changed := make([]int64, i+1-first)
	for k := range changed[:i-first] {
		changed[k] = n
	}
	for _, m := range moves {
		for k := pl.firstStep[m.buffer]; k <= i; k++ {
			changed[k-first] -= pl.values[m.buffer].Bytes()
		}
	}
	return changed
}

// live is the number of bytes in use at each step.
func (pl *planner) live() []int64 {
	live := append([]int64(nil), pl.scratch...)
	for o, h := range pl.buffer {
		if o != h {
			continue
		}
		for i := pl.firstStep[o]; i <= pl.lastStep[o]; i++ {
			live[i] += pl.values[o].Bytes()
		}
	}
	return live
}
