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

// product quantizes the weight of a product, k rows of n columns with the given elements of a column, to 4 bits. It returns the ledger
// row, the weight and the restored weight.
func product(t *testing.T, k, n int64, element func(b *builder, i int) float32, options ...string) (row pass.Row, x, restored []float32) {
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
	r, err := pass.Run(context.Background(), b.Model(), e, pass.Environment{Workers: 1}, []pass.Options{variant{WeightInt4{}.Method(), options}.step(t)})
	if err != nil || len(r.Rows) != 1 || r.Rows[0].Restore == nil {
		t.Fatalf("%d rows: %v", len(r.Rows), err)
	}
	var parts []*ir.Tensor
	for _, p := range r.Rows[0].After {
		parts = append(parts, p.Tensor)
	}
	bytes, err := e.ReadAll(context.Background(), r.Rows[0].Restore(parts))
	if err != nil {
		t.Fatal(err)
	}
	return r.Rows[0], x, kernel.Words[float32](bytes)
}

func normal(b *builder, _ int) float32 { return float32(b.random.NormFloat64()) }

// By default scales minimize the error where that helps, and are those of round to nearest where outputs are as good: normal weights of long
// columns gain by clipping the largest ones, and weights that are levels do not.
func TestScalesAreChosenByOutputs(t *testing.T) {
	for name, c := range map[string]struct {
		element func(b *builder, i int) float32
		nearest bool
	}{
		"normal": {normal, false},
		"levels": {func(b *builder, i int) float32 { return float32(i%16) - 8 }, true},
	} {
		row, _, _ := product(t, 1024, 16, c.element, "per-channel")
		if got := slices.ContainsFunc(row.Notes, func(r pass.Reason) bool { return r.Code == pass.NearestChosen }); got != c.nearest {
			t.Errorf("%s: round to nearest is chosen: %t", name, got)
		}
	}
}

// Round to nearest with scales from the minimum and maximum differs by a step at most; MSE-optimal scales clip, for a smaller error.
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
