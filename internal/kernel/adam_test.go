package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A step has the result of the elementwise kernels, one after the other, at every length.
func TestAdamStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = rng.Float32() - 0.5
		}
		return x
	}
	s := AdamStep{Rest1: 0.1, Rest2: 0.001, Beta2: 0.999, Epsilon: 1e-8, Correction: 3.5, Rate: -0.01, Coupled: 0.02,
		Shrink: 0.97}
	for n := range 100 {
		w, g, m, v := random(n), random(n), random(n), random(n)
		Mul(v, v, v)
		w2, g2, m2, v2, spare := slices.Clone(w), slices.Clone(g), slices.Clone(m), slices.Clone(v), make([]float32, n)
		s.Apply(w, g, m, v)
		if !slices.Equal(g, g2) {
			t.Fatalf("%d elements: the gradient changed", n)
		}
		Axpy(g2, s.Coupled, w2)
		Sub(spare, g2, m2)
		Axpy(m2, s.Rest1, spare)
		MulScalar(spare, g2, s.Rest2)
		Mul(spare, spare, g2)
		MulScalar(v2, v2, s.Beta2)
		Add(v2, v2, spare)
		Sqrt(spare, v2)
		ScaleShift(spare, spare, s.Correction, s.Epsilon)
		Div(spare, m2, spare)
		MulScalar(w2, w2, s.Shrink)
		Axpy(w2, s.Rate, spare)
		if !slices.Equal(w, w2) || !slices.Equal(m, m2) || !slices.Equal(v, v2) {
			t.Fatalf("%d elements: other results than those of the operations", n)
		}
	}
}
