package engine

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// concatenate lets steps compute the inputs of a Concat in the memory of its output, if they are contiguous there and nothing else reads them
// later. The output's lifetime begins with the first of them, which must not raise the peak.
func (pl *planner) concatenate() {
	var live []int64
	for i, s := range pl.prog.steps {
		if pl.modes[i] != placed || !s.is("Concat") || !pl.joins(s) {
			continue
		}
		if live == nil {
			live = pl.live()
		}
		pl.join(i, s, live)
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
	for _, n := range out.Shape[:axis] {
		if n != 1 {
			return false
		}
	}
	return true
}

// join moves the buffers of inputs of Concat i into that of its output.
func (pl *planner) join(i int, s *step, live []int64) {
	o, at := s.out[0], int64(0)
	offsets, first := map[int]int64{}, i
	for _, j := range s.in {
		h, n := pl.buffer[j], pl.values[j].Bytes()
		if _, twice := offsets[h]; !twice && at%ir.Alignment == 0 && pl.joinable(i, h, n) {
			offsets[h] = at
			first = min(first, pl.firstStep[h])
		}
		at += n
	}
	changed := pl.joined(i, first, at, offsets)
	peak := int64(0)
	for _, n := range live {
		peak = max(peak, n)
	}
	for k, n := range changed {
		if live[first+k]+n > peak {
			return
		}
	}
	for k, n := range changed {
		live[first+k] += n
	}
	for slot, h := range pl.buffer {
		if off, ok := offsets[h]; ok {
			pl.buffer[slot] = o
			pl.offset[slot] += off
		}
	}
	pl.firstStep[o] = first
}

// joinable reports whether buffer h can move into that of the output of step i: it has n bytes and is read there for the last time.
func (pl *planner) joinable(i, h int, n int64) bool {
	return h != absent && n > 0 && pl.lastStep[h] == i && pl.prog.slots[h].constant == nil && pl.values[h].Bytes() == n
}

// joined is the change of the live bytes of the steps first to i if buffers move into one of n bytes that begins with step first.
func (pl *planner) joined(i, first int, n int64, offsets map[int]int64) []int64 {
	changed := make([]int64, i+1-first)
	for k := range changed[:i-first] {
		changed[k] = n
	}
	for h := range offsets {
		for k := pl.firstStep[h]; k <= i; k++ {
			changed[k-first] -= pl.values[h].Bytes()
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
