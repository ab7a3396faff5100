package hessian

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
)

func TestHessianThatHasNoFactor(t *testing.T) {
	p := op.NewPool(1)
	defer p.Close()
	h := New(p, 2)
	h.Add([]float32{1, float32(math.Inf(1))})
	if _, err := h.Factor(Options{Damp: 0.01}); err == nil {
		t.Error("an infinite Hessian has a factor")
	}
}

// Few random rows need strong shrinkage, many none; equal rows need none however few they are.
func TestShrinkage(t *testing.T) {
	const k = 32
	p := op.NewPool(1)
	defer p.Close()
	r := rand.New(rand.NewPCG(3, 4))
	of := func(n int, common bool) float64 {
		x := make([]float32, n*k)
		for i := range x {
			scale := 1 + float64(i%k)/k
			if common {
				scale = float64(i%k) * 10
				x[i] = float32(scale)
			}
			x[i] += float32(scale * r.NormFloat64() / 10)
		}
		h := New(p, k)
		h.Add(x)
		return h.Shrinkage()
	}
	few, many, alike := of(k, false), of(500*k, false), of(k, true)
	if few < 0.5 || many > few/20 || alike > 0.01 {
		t.Errorf("%g for few rows, %g for many, %g for equal rows", few, many, alike)
	}
	if h := New(p, k); h.Shrinkage() != 0 {
		t.Errorf("%g for none", h.Shrinkage())
	}
}
