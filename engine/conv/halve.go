package conv

import (
	"math"

	"github.com/mcompress/mcompress/kernel"
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

// halve pools a channel of float32 and finds the places in one go, with whole numbers that are in the order of the floats. It
// reports whether it has: it does not take numbers that are none, nor ones below the lowest.
func halve[T float, P Place](w *window, places []P, y, x []T) bool {
	in, ok := any(x).([]float32)
	if !ok {
		return false
	}
	if lo, _ := kernel.MinMax(in); !(lo >= -math.MaxFloat32) {
		return false
	}
	out, to := any(y).([]float32), any(places).([]uint8)
	for o := range w.out[0] {
		halveRow(part(to, o, w.out[1]), part(out, o, w.out[1]), in[2*o*w.in[1]:], in[(2*o+1)*w.in[1]:])
	}
	return true
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
