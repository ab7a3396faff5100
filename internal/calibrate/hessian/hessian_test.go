package hessian

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mcompress/mcompress/internal/engine/op"
)

func TestHessianThatHasNoFactor(t *testing.T) {
	p := op.NewPool(1)
	defer p.Close()
	h := New(p, 2)
	h.Add([]float32{1, float32(math.Inf(1))})
	if _, err := h.Factor(t.Context(), Options{Damp: 0.01}); err == nil {
		t.Error("an infinite Hessian has a factor")
	}
}

// The factor of many columns takes minutes: no product begins once the context has ended.
func TestFactorEndsWithItsContext(t *testing.T) {
	p := op.NewPool(1)
	defer p.Close()
	factor := func(c *countdown) error {
		h := New(p, 1500)
		h.Add(make([]float32, 1500))
		_, err := h.Factor(c, Options{Damp: 0.01})
		return err
	}
	whole := &countdown{Context: t.Context(), left: math.MaxInt}
	if err := factor(whole); err != nil {
		t.Fatal(err)
	}
	asked := math.MaxInt - whole.left
	if asked < 1500/leaf {
		t.Fatalf("the context is asked %d times", asked)
	}
	for _, left := range []int{0, 1, asked / 2, asked - 1} {
		c := &countdown{Context: t.Context(), left: left}
		if err := factor(c); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled after %d of %d: got %v", left, asked, err)
		}
		if c.left < -asked/4 {
			t.Errorf("canceled after %d of %d: it is asked %d times more", left, asked, -c.left)
		}
	}
}

// A countdown is canceled once it was asked some times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
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
	few, many, correlatedRows := of(k, false), of(500*k, false), of(k, true)
	if few < 0.5 || many > few/20 || correlatedRows > 0.01 {
		t.Errorf("%g for few rows, %g for many, %g for equal rows", few, many, correlatedRows)
	}
	if h := New(p, k); h.Shrinkage() != 0 {
		t.Errorf("%g for none", h.Shrinkage())
	}
}

// The factor is that of gonum in float64, with rows in activation order, and bit-identical for any number of workers.
func TestFactor(t *testing.T) {
	const k, n, damp = 333, 700, 0.01
	r := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, n*k)
	for i := range x {
		x[i] = float32(r.NormFloat64() * (1 + float64(i%k%17)))
	}
	of := func(workers int) *Factor {
		p := op.NewPool(workers)
		defer p.Close()
		h := New(p, k)
		h.Add(x)
		f, err := h.Factor(t.Context(), Options{Damp: damp, Order: true, Block: 32})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f, other := of(1), of(3)
	want := mat.NewSymDense(k, nil)
	trace := 0.0
	for i, a := range f.Order {
		for j, b := range f.Order[i:] {
			sum := 0.0
			for row := 0; row < len(x); row += k {
				sum += float64(x[row+a]) * float64(x[row+b])
			}
			want.SetSym(i, i+j, sum)
		}
		trace += want.At(i, i)
	}
	for i := range k {
		want.SetSym(i, i, want.At(i, i)+damp*trace/k)
	}
	var reference mat.Cholesky
	if !reference.Factorize(want) {
		t.Fatal("not positive definite")
	}
	upper := reference.RawU()
	for i := range k {
		d := upper.At(i, i)
		for j := i; j < k; j++ {
			got := float64(f.Unit[i*k+j])
			if math.Abs(got-upper.At(i, j)/d) > 1e-5 {
				t.Fatalf("%d, %d: %g, want %g", i, j, got, upper.At(i, j)/d)
			}
			if f.Unit[i*k+j] != other.Unit[i*k+j] {
				t.Fatalf("%d, %d: depends on the number of workers", i, j)
			}
		}
		if math.Abs(f.Loss[i]/d/d-1) > 1e-5 {
			t.Fatalf("loss %d: %g, want %g", i, f.Loss[i], d*d)
		}
	}
}
