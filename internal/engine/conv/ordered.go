package conv

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// halves reports whether windows are 2×2 and lie side by side, as most pools of small classifiers do.
func (w *window) halves() bool {
	if len(w.in) != 2 {
		return false
	}
	for i := range w.in {
		if w.kernel[i] != 2 || w.stride[i] != 2 || w.dilation[i] != 1 || w.begin[i] != 0 || 2*w.out[i] > w.in[i] {
			return false
		}
	}
	return true
}

// inOrderOver pools a channel of float32 and finds the places in one go, by whole numbers that are in the order of the floats.
// It reports whether it has: it does not take numbers that are none, nor ones that are not above the lowest.
func inOrderOver[T float, P Place](f *finder, places []P, y, x []T) bool {
	in, ok := any(x).([]float32)
	if !ok || len(in) == 0 {
		return false
	}
	if lo, _ := kernel.MinMax(in); !(lo > -math.MaxFloat32) {
		return false
	}
	out, last := any(y).([]float32), f.last()
	bytes, _ := any(places).([]uint8) // places of 2×2 are bytes
	for o := range f.rows {
		row := part(out, o, f.out[last])
		if f.half {
			halveRow(part(bytes, o, f.out[last]), row, in[2*o*f.in[last]:], in[(2*o+1)*f.in[last]:])
		} else {
			greatestAndEnds(f, o, part(places, o, f.out[last]), row, in)
		}
	}
	return true
}

// greatestAndEnds is row o of the output. Windows at its ends may reach into the padding.
func greatestAndEnds[P Place](f *finder, o int, places []P, y, x []float32) {
	lo, stride := min(f.lo, len(y)), f.stride[f.last()]
	hi := max(lo, f.hi)
	greatestRow(places[lo:hi], y[lo:hi], x, f.taps[o], lo*stride, stride)
	for i := range y {
		if i < lo || i >= hi {
			v, at := firstPlace(f.window, x, f.rows[o], i)
			y[i], places[i] = v, P(at)
		}
	}
}

// greatestRow is windows of a row that lie stride apart: of the greatest numbers the first.
func greatestRow[P Place](places []P, y, x []float32, taps []candidate, from, stride int) {
	places = places[:len(y)]
	for i := range y {
		best := int64(inOrder(-math.MaxFloat32))<<32 | math.MaxInt32
		for _, t := range taps {
			best = max(best, int64(inOrder(x[from+t.off]))<<32|int64(math.MaxInt32-t.tap))
		}
		y[i], places[i] = fromOrder(int32(best>>32)), P(math.MaxInt32-int32(best))
		from += stride
	}
}

// halveRow is one row of the output. It has no branches to guess.
func halveRow(places []uint8, y, above, below []float32) {
	above, below, places = above[:2*len(y)], below[:2*len(y)], places[:len(y)]
	for i := range y {
		a, b := inOrder(above[2*i]), inOrder(above[2*i+1])
		c, d := inOrder(below[2*i]), inOrder(below[2*i+1])
		at, under := 0, 2
		if b > a {
			at = 1
		}
		if d > c {
			under = 3
		}
		a, c = max(a, b), max(c, d)
		if c > a {
			at = under
		}
		places[i], y[i] = uint8(at), fromOrder(max(a, c))
	}
}

// inOrder is a whole number that is greater where x is: those below zero are turned round.
func inOrder(x float32) int32 {
	b := int32(math.Float32bits(x))
	return b ^ int32(uint32(b>>31)>>1)
}

// fromOrder is the reverse of inOrder.
func fromOrder(b int32) float32 {
	return math.Float32frombits(uint32(b ^ int32(uint32(b>>31)>>1)))
}
