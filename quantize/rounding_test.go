package quantize

import (
	"context"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// product quantizes the weight of a product, k rows of n columns with the given elements of a column, to 4 bits. It
// returns the ledger row, the weight and the restored weight.
func product(t *testing.T, k, n int64, element func(b *builder, i int) float32,
	options ...string) (row pass.Row, x, y []float32) {
	t.Helper()
	b, e := newBuilder(t, 21), ir.NewEval(t.TempDir())
	defer e.Close()
	x = make([]float32, k*n)
	for i := range int(k) {
		for j := range int(n) {
			x[i*int(n)+j] = element(b, i)
		}
	}
	w := b.AddConst("w", quanttest.TensorOf(ir.Float, []int64{k, n}, x))
	b.output("y", b.node("MatMul", []*ir.Value{b.input("x", 4, k), w}), 4, n)
	r, err := pass.Run(context.Background(), b.Model(), e, pass.Environment{Workers: 1},
		[]pass.Options{variant{WeightInt4{}.Method(), options}.step(t)})
	if err != nil || len(r.Rows) != 1 || r.Rows[0].Restore == nil {
		t.Fatalf("%d rows: %v", len(r.Rows), err)
	}
	return r.Rows[0], x, restoredWeight(t, e, r.Rows[0])
}

// restoredWeight is the weight of a row, dequantized.
func restoredWeight(t *testing.T, e *ir.Eval, row pass.Row) []float32 {
	t.Helper()
	var parts []*ir.Tensor
	for _, p := range row.After {
		parts = append(parts, p.Tensor)
	}
	bytes, err := e.ReadAll(context.Background(), row.Restore(parts))
	if err != nil {
		t.Fatal(err)
	}
	return kernel.Words[float32](bytes)
}

func normal(b *builder, _ int) float32 { return float32(b.random.NormFloat64()) }

// By default scales minimize the error where that helps, and are those of round to nearest where outputs are as good:
// normal weights of long columns gain by clipping the largest ones, and weights that are levels do not.
func TestScalesAreChosenByOutputs(t *testing.T) {
	for name, c := range map[string]struct {
		element func(b *builder, i int) float32
		nearest bool
	}{
		"normal": {normal, false},
		"levels": {func(b *builder, i int) float32 { return float32(i%16) - 8 }, true},
	} {
		row, _, _ := product(t, 1024, 16, c.element, "per-channel")
		if got := slices.ContainsFunc(row.Notes, func(r pass.Reason) bool {
			return r.Code == pass.NearestChosen
		}); got != c.nearest {
			t.Errorf("%s: round to nearest is chosen: %t", name, got)
		}
	}
}

// Round to nearest with scales from the minimum and maximum differs by a step at most; MSE-optimal scales clip, for a
// smaller error.
func TestRulesForScales(t *testing.T) {
	const k, n = 1024, 8
	squares := map[string]float64{}
	for _, search := range []string{"minmax", "mse"} {
		_, x, y := product(t, k, n, normal, "per-channel", "search="+search)
		clipped := false
		for col := range n {
			lo, hi, most := float32(0), float32(0), float32(0)
			for i := range k {
				v, d := x[i*n+col], x[i*n+col]-y[i*n+col]
				lo, hi, most = min(lo, v), max(hi, v), max(most, d, -d)
				squares[search] += float64(d) * float64(d)
			}
			clipped = clipped || most > (hi-lo)/15*1.01 // the zero point is rounded, too
		}
		if clipped != (search == "mse") {
			t.Errorf("%s: elements are clipped: %t", search, clipped)
		}
	}
	if squares["mse"] > 0.9*squares["minmax"] {
		t.Errorf("squared errors %v", squares)
	}
}

// GPTQ quantizes each product that it supports, whether others do or not; the rest has the scales of --search.
func TestGPTQOfEachProduct(t *testing.T) {
	weights := func(algo string, gemm bool) (all [][]float32) {
		b, e := newBuilder(t, 21), ir.NewEval(t.TempDir())
		defer e.Close()
		x := b.input("x", 64, 64)
		if gemm {
			x = b.node("Gemm", []*ir.Value{x, b.weight("g", 64, 64)}, ir.IntAttr("transA", 1))
		}
		b.output("y", b.node("MatMul", []*ir.Value{x, b.weight("w", 64, 48)}), 64, 48)
		r, err := pass.Run(context.Background(), b.Model(), e, pass.Environment{Workers: 1},
			[]pass.Options{variant{WeightInt4{}.Method(), []string{"search=mse", "algo=" + algo}}.step(t)})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			if row.Restore != nil {
				all = append(all, slices.Clone(restoredWeight(t, e, row)))
			}
		}
		return all
	}
	if gptq, rtn := weights("gptq", false), weights("rtn", false); len(gptq) != 1 || len(rtn) != 1 ||
		slices.Equal(gptq[0], rtn[0]) {
		t.Error("the only product is rounded to nearest")
	}
	gptq, rtn := weights("gptq", true), weights("rtn", true)
	if len(gptq) != 2 || len(rtn) != 2 {
		t.Fatalf("%d and %d weights, want 2", len(gptq), len(rtn))
	}
	if !slices.Equal(gptq[0], rtn[0]) {
		t.Error("a product of transposed inputs is not rounded to nearest")
	}
	if slices.Equal(gptq[1], rtn[1]) {
		t.Error("the product after it is rounded to nearest")
	}
}
