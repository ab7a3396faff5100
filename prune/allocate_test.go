package prune

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A weight with outliers keeps more elements than one without; together they keep the amount.
func TestOutliersGetSmallerAmounts(t *testing.T) {
	for _, method := range []string{"wanda", "sparsegpt"} {
		b := newBench(t)
		flat, outlying := make([]float64, 400), make([]float64, 400)
		for i := range flat {
			flat[i] = 1 + float64(i%7)/10
			outlying[i] = flat[i]
			if i%20 == 0 {
				outlying[i] = 100
			}
		}
		ws := []*ir.Value{b.weight("flat", ir.Float, []int64{20, 20}, flat...),
			b.weight("outlying", ir.Float, []int64{20, 20}, outlying...)}
		x := b.typedInput(4, 20)
		for _, w := range ws {
			b.g.AddOutput(b.node("MatMul", []*ir.Value{x, w}))
		}
		m := wandaMethod
		if method == "sparsegpt" {
			m = sparseGPTMethod
		}
		b.run(m, "amount", "0.5", "allocate", "owl")
		if a, c := b.zeros(ws[0]), b.zeros(ws[1]); math.Abs(float64(a-232)) > 1 || math.Abs(float64(c-168)) > 1 {
			t.Errorf("%s: %d and %d zeros of 400, want 58 %% and 42 %%", method, a, c)
		}
	}
}

// A weight whose outputs count more keeps more elements; together they keep the amount.
func TestSensitiveWeightsGetSmallerAmounts(t *testing.T) {
	for _, m := range []*pass.Method{wandaMethod, sparseGPTMethod} {
		b := newBench(t)
		values := make([]float64, 400)
		for i := range values {
			values[i] = 1 + float64(i%7)/10
		}
		x := b.typedInput(4, 20)
		strong, weak := b.weight("strong", ir.Float, []int64{20, 20}, values...),
			b.weight("weak", ir.Float, []int64{20, 20}, values...)
		y := b.node("Mul", []*ir.Value{b.node("MatMul", []*ir.Value{x, weak}), b.weight("factor", ir.Float, []int64{1}, 0.1)})
		b.g.AddOutput(b.node("Add", []*ir.Value{b.node("MatMul", []*ir.Value{x, strong}), y}))
		b.run(m, "amount", "0.5", "allocate", "sensitivity")
		if s, w := b.zeros(strong), b.zeros(weak); math.Abs(float64(s-168)) > 1 || math.Abs(float64(w-232)) > 1 {
			t.Errorf("%s: %d and %d zeros of 400, want 42 %% and 58 %%", m.Name, s, w)
		}
	}
}

// zeros is the number of zeros of a weight.
func (b *bench) zeros(w *ir.Value) (n int) {
	for _, v := range b.values(w) {
		if v == 0 {
			n++
		}
	}
	return n
}

func TestAllocationExcludesOtherAmounts(t *testing.T) {
	for _, s := range []Wanda{{Allocate: owl, Pattern: Pattern{N: 2, M: 4}},
		{Allocate: owl, Amounts: Amounts{{"w", 0.5}}}} {
		if err := s.Check(); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}
