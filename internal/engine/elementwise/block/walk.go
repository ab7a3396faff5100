package block

import "slices"

// A Walk is the order in which operands are read that are broadcast, or strided, to one shape: the result is row-major,
// and each operand has a stride along each of its axes. Axes that are contiguous in all operands are merged.
type Walk struct {
	dims  []int
	steps [][]int // [operand][axis]; 0 where an operand broadcasts
}

// Broadcast returns the walk of operands with these shapes, which broadcast to out.
func Broadcast(out []int64, in ...[]int64) Walk {
	steps := make([][]int, len(in))
	for i, shape := range in {
		steps[i] = make([]int, len(out))
		step := 1
		for j, d := range slices.Backward(shape) {
			if d != 1 {
				steps[i][len(out)-len(shape)+j] = step
			}
			step *= int(d)
		}
	}
	dims := make([]int, len(out))
	for i, d := range out {
		dims[i] = int(d)
	}
	return Strided(dims, steps...)
}

// Strided returns the walk of operands with these strides along the axes of dims.
func Strided(dims []int, steps ...[]int) Walk {
	w := Walk{steps: make([][]int, len(steps))}
	for axis, d := range dims {
		// An axis of one position has no stride of its own, and would only keep others from being merged.
		if d == 1 {
			continue
		}
		last := len(w.dims) - 1
		if last >= 0 && merges(steps, w.steps, axis, d) {
			w.dims[last] *= d
		} else {
			w.dims = append(w.dims, d)
			last++
			for i := range w.steps {
				w.steps[i] = append(w.steps[i], 0)
			}
		}
		for i := range steps {
			w.steps[i][last] = steps[i][axis]
		}
	}
	return w
}

// merges reports whether the axis continues the last one of the merged axes in every operand.
func merges(steps, merged [][]int, axis, d int) bool {
	for i := range steps {
		if m := merged[i]; m[len(m)-1] != steps[i][axis]*d {
			return false
		}
	}
	return true
}

// Size is the number of positions.
func (w Walk) Size() int {
	n := 1
	for _, d := range w.dims {
		n *= d
	}
	return n
}

// Inner is the length of the longest runs.
func (w Walk) Inner() int {
	if len(w.dims) == 0 {
		return 1
	}
	return w.dims[len(w.dims)-1]
}

// Step is the stride of an operand along a run.
func (w Walk) Step(operand int) int {
	if len(w.dims) == 0 {
		return 1
	}
	return w.steps[operand][len(w.dims)-1]
}

// Offset is the element of an operand at a position.
func (w Walk) Offset(operand, at int) int {
	off := 0
	for axis, d := range slices.Backward(w.dims) {
		off += at % d * w.steps[operand][axis]
		at /= d
	}
	return off
}

// Runs calls f for each range of the positions from..to along which every operand has one stride: n positions from at
// on, operand i starting at element off[i]. f must not keep or change off.
func (w Walk) Runs(from, to int, f func(at, n int, off []int)) {
	if from >= to {
		return
	}
	index, off := w.seek(from)
	last := len(w.dims) - 1
	for at := from; ; {
		if last < 0 {
			f(at, 1, off)
			return
		}
		n := min(w.dims[last]-index[last], to-at)
		f(at, n, off)
		if at += n; at >= to {
			return
		}
		w.next(index, off, n)
	}
}

// seek returns the index of a position along each axis, and the operands' offsets there.
func (w Walk) seek(at int) (index, off []int) {
	index, off = make([]int, len(w.dims)), make([]int, len(w.steps))
	for axis, d := range slices.Backward(w.dims) {
		index[axis] = at % d
		at /= d
		for i, s := range w.steps {
			off[i] += index[axis] * s[axis]
		}
	}
	return index, off
}

// next moves index and off from within a run to the start of the following one, n positions on.
func (w Walk) next(index, off []int, n int) {
	axis := len(w.dims) - 1
	index[axis] += n
	for i, s := range w.steps {
		off[i] += n * s[axis]
	}
	// The run's axis may be at its end: the axis before it advances by one, and its own offset goes back to 0.
	for ; axis > 0 && index[axis] == w.dims[axis]; axis-- {
		index[axis-1]++
		for i, s := range w.steps {
			off[i] += s[axis-1] - index[axis]*s[axis]
		}
		index[axis] = 0
	}
}
