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
		// The rank is in the upper half and the complement of the tap in the lower one: the maximum of both is the first
		// tap of several equal values, without a branch.
		top := orderedInt(-math.MaxFloat32)
		best := int64(rank(top))<<32 | math.MaxInt32
		for _, t := range taps {
			v := orderedInt(x[from+t.off])
			top = max(top, v)
			best = max(best, int64(rank(v))<<32|int64(math.MaxInt32-t.tap))
		}
		y[i], places[i] = fromOrderedInt(top), P(math.MaxInt32-int32(best))
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
		if rank(b) > rank(a) {
			at = 1
		}
		if rank(d) > rank(c) {
			under = 3
		}
		a, c = max(a, b), max(c, d)
		if rank(c) > rank(a) {
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

// rank is the order of a number by its orderedInt, in which -0 equals +0: the argmax is the first of both, as in ONNX
// Runtime, while the maximum is +0 if there is one, as without an argmax. -0 is -1, so that negative numbers move up.
func rank(b int32) int32 { return b - b>>31 }

// fromOrderedInt is the inverse of orderedInt.
func fromOrderedInt(b int32) float32 {
	return math.Float32frombits(uint32(b ^ int32(uint32(b>>31)>>1)))
}
