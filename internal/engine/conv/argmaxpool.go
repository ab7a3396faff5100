package conv

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// isHalving reports whether windows are 2×2 with stride 2, as most pools of small classifiers.
func (w *window) isHalving() bool {
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

// maxArgmax pools a channel of float32 and finds the argmax in one pass, with integers that are ordered like the
// floats. It reports whether it did: NaN and -Inf are not supported.
func maxArgmax[T float, P Argmax](f *finder, places []P, y, x []T) bool {
	in, ok := any(x).([]float32)
	if !ok || len(in) == 0 {
		return false
	}
	if lo, _ := kernel.MinMax(in); !(lo > -math.MaxFloat32) {
		return false
	}
	out, last := any(y).([]float32), f.last()
	bytes, _ := any(places).([]uint8) // argmaxes of 2×2 fit a byte
	for o := range f.rows {
		row := part(out, o, f.out[last])
		if f.half {
			halveRow(part(bytes, o, f.out[last]), row, in[2*o*f.in[last]:], in[(2*o+1)*f.in[last]:])
		} else {
			maxRowArgmax(f, o, part(places, o, f.out[last]), row, in)
		}
	}
	return true
}

// maxRowArgmax computes row o of the output. Windows at its ends may include padding.
func maxRowArgmax[P Argmax](f *finder, o int, places []P, y, x []float32) {
	lo, stride := min(f.lo, len(y)), f.stride[f.last()]
	hi := max(lo, f.hi)
	maxRow(places[lo:hi], y[lo:hi], x, f.taps[o], lo*stride, stride)
	for i := range y {
		if i < lo || i >= hi {
			v, at := firstTap(f.window, x, f.rows[o], i)
			y[i], places[i] = v, P(at)
		}
	}
}

// maxRow computes windows of a row that are stride apart: the first maximum of each.
func maxRow[P Argmax](places []P, y, x []float32, taps []candidate, from, stride int) {
	places = places[:len(y)]
	for i := range y {
		// The value is in the upper half and the complement of the tap in the lower one: the maximum of both is the first
		// tap of several equal values, without a branch.
		best := int64(orderedInt(-math.MaxFloat32))<<32 | math.MaxInt32
		for _, t := range taps {
			best = max(best, int64(orderedInt(x[from+t.off]))<<32|int64(math.MaxInt32-t.tap))
		}
		y[i], places[i] = fromOrderedInt(int32(best>>32)), P(math.MaxInt32-int32(best))
		from += stride
	}
}

// halveRow computes one row of the output, without branches.
func halveRow(places []uint8, y, above, below []float32) {
	above, below, places = above[:2*len(y)], below[:2*len(y)], places[:len(y)]
	for i := range y {
		a, b := orderedInt(above[2*i]), orderedInt(above[2*i+1])
		c, d := orderedInt(below[2*i]), orderedInt(below[2*i+1])
		// Strict comparisons keep the first of equal elements, above before below and left before right.
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
		places[i], y[i] = uint8(at), fromOrderedInt(max(a, c))
	}
}

// orderedInt maps x to an integer with the same order: negative numbers are inverted.
func orderedInt(x float32) int32 {
	b := int32(math.Float32bits(x))
	return b ^ int32(uint32(b>>31)>>1)
}

// fromOrderedInt is the inverse of orderedInt.
func fromOrderedInt(b int32) float32 {
	return math.Float32frombits(uint32(b ^ int32(uint32(b>>31)>>1)))
}
