package solve

import (
	"math/rand/v2"
	"testing"
)

// matrix is k×n values with outliers, around a mean that differs between columns.
func matrix(k, n int) []float32 {
	r := rand.New(rand.NewPCG(3, 9))
	w := make([]float32, k*n)
	for i := range w {
		w[i] = float32(r.NormFloat64()) + float32(i%n%5) - 1
		if r.IntN(500) == 0 {
			w[i] *= 6
		}
	}
	return w
}

// real is the dequantized value i, in column j.
func (c *Quantized) real(i, j int) float32 {
	at := i/c.Spec.Block*c.N + j
	return (float32(c.Values[i*c.N+j]) - c.Point[at]) * c.Scale[at]
}

// Real zero points have a smaller error than integer ones, zero mean error per block, and values are at most a quarter
// of a step from round to nearest.
func TestHQQOfRealZeroPoints(t *testing.T) {
	for _, size := range []struct {
		k, n, block int
		half        bool
	}{{128, 48, 32, false}, {100, 21, 16, false}, {20, 5, 32, false}, {100, 21, 16, true}} {
		g := Spec{High: 15, Block: size.block, Half: size.half}
		w := matrix(size.k, size.n)
		whole, c := NewQuantized(size.k, size.n, g), NewQuantized(size.k, size.n, g)
		c.Point = make([]float32, len(c.Scale))
		MSE(whole, w)
		HQQ(c, w)
		var errWhole, errReal float64
		means := make([]float64, len(c.Scale))
		for i := range size.k {
			for j := range size.n {
				v, at := w[i*size.n+j], i/size.block*size.n+j
				d, e := float64(whole.Weight(i, j)-v), float64(c.real(i, j)-v)
				errWhole, errReal = errWhole+d*d, errReal+e*e
				means[at] += e / float64(min(size.block, size.k-i/size.block*size.block)) / float64(c.Scale[at])
				if value := c.Values[i*size.n+j]; value > 15 || (e > 0.751*float64(c.Scale[at]) && value > 0) ||
					(e < -0.751*float64(c.Scale[at]) && value < 15) {
					t.Fatalf("%v: %g is dequantized to %g (quantized value %d, scale %g)", size, v, c.real(i, j), value, c.Scale[at])
				}
			}
		}
		if errReal > 0.98*errWhole {
			t.Errorf("%v: squared error %.4g, %.4g with integer zero points", size, errReal, errWhole)
		}
		for i, p := range c.Point {
			if _, ok := narrowed(p); size.half && !ok {
				t.Errorf("%v: zero point %d is %g", size, i, p)
			}
		}
		far := 0
		for _, m := range means {
			if m > 0.1 || m < -0.1 {
				far++
			}
		}
		if far > len(means)/20 {
			t.Errorf("%v: the errors of %d of %d blocks have a non-zero mean", size, far, len(means))
		}
	}
}

// Blocks of zeros, and constant blocks, are exact.
func TestHQQOfConstants(t *testing.T) {
	g := Spec{High: 15, Block: 16}
	for _, v := range []float32{0, 3, -0.25} {
		w := make([]float32, 16*16)
		for i := range w {
			w[i] = v
		}
		c := NewQuantized(16, 16, g)
		c.Point = make([]float32, len(c.Scale))
		HQQ(c, w)
		for i := range 256 {
			if got := c.real(i/16, i%16); got < v-1e-6 || got > v+1e-6 {
				t.Fatalf("%g is dequantized to %g", v, got)
			}
		}
	}
}
