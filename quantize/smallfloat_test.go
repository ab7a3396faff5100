package quantize

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
)

// Every output is valid, smaller, of the same interface, runs in ONNX Runtime and in the embedded engine, and comes
// close.
func TestSmallFloatOutputs(t *testing.T) {
	many(t)
	w := conform.Start(t)
	variants := []variant{{Float8{}.Method(), nil}, {Float8{}.Method(), []string{"type=e5m2"}},
		{Float8{}.Method(), []string{"per-tensor"}}, {BFloat16{}.Method(), nil}}
	for i, path := range conform.Fixtures(t) {
		for _, v := range conform.Sampled(i, variants) {
			t.Run(v.String()+" "+label(path), func(t *testing.T) { equivalent(t, w, v, path, 10) })
		}
	}
	for _, path := range conform.QuickModels(t) {
		t.Run(label(path), func(t *testing.T) { try(t, w, variant{Float8{}.Method(), nil}, path) })
	}
}

// bound is the maximum relative error of normal numbers with so many bits of fraction, and the maximum error, in units
// of the scale, of subnormal ones.
func bound(fraction, smallest int) (relative, absolute float64) {
	return math.Ldexp(1, -fraction-1), math.Ldexp(1, smallest-1)
}

// restored are the values of the weight of shape 70 × 48 that a method stores for x, as restored by its ledger row.
func restored(t *testing.T, v variant, x []float32) []float32 {
	t.Helper()
	s := newBuilder(t, 17)
	in := s.input("x", 4, 70)
	s.output("y", s.node("MatMul", []*ir.Value{in, s.AddConst("w", quanttest.TensorOf(ir.Float, []int64{70, 48}, x))}), 4,
		48)
	dir := t.TempDir()
	if n := restoredModel(t, v, s.save(), filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")); n != 1 {
		t.Fatalf("%s: %d weights were changed, want 1", v, n)
	}
	sameModels(t, filepath.Join(dir, "twin.onnx"), filepath.Join(dir, "out.onnx"))
	weight := opened(t, filepath.Join(dir, "twin.onnx")).Model.Graph.Consts()[0]
	b, err := ir.NewEval(dir).ReadAll(t.Context(), weight.Const)
	if err != nil {
		t.Fatal(err)
	}
	return floats32(b)
}

// sameModels checks that two models compute the same in the embedded engine, except for the order of sums.
func sameModels(t *testing.T, a, b string) {
	t.Helper()
	r, err := job.Verify(t.Context(), a, b, job.Verification{})
	if err != nil || r.Skipped != "" {
		t.Fatalf("%v %s", err, r.Skipped)
	}
	for _, o := range r.Outputs {
		if db := o.Errors.DB(); db < 120 {
			t.Errorf("%s: %.1f dB from the weights that the ledger restores", o.Name, db)
		}
	}
}

// Each element is within the format's error bound, for the scale of its column or block.
func TestSmallFloatsAreWithinTheirBounds(t *testing.T) {
	for _, c := range []struct {
		variant
		fraction, smallest int
		largest            float64
		block              int
	}{
		{variant{Float8{}.Method(), nil}, 3, -9, 448, 70},
		{variant{Float8{}.Method(), []string{"type=e5m2"}}, 2, -16, 57344, 70},
		{variant{Float4{}.Method(), nil}, 1, -1, 4, 32}, // where a block's peak is scaled to 4, its scale is largest
		{variant{Float4{}.Method(), []string{"block=16"}}, 1, -1, 4, 16},
	} {
		s := newBuilder(t, 17)
		x := make([]float32, 70*48)
		for i := range x {
			x[i] = float32(s.random.NormFloat64() * math.Exp(s.random.NormFloat64()))
		}
		got := restored(t, c.variant, x)
		relative, absolute := bound(c.fraction, c.smallest)
		for i, v := range x {
			row, col := i/48, i%48
			peak := 0.
			for r := row / c.block * c.block; r < min(70, (row/c.block+1)*c.block); r++ {
				peak = max(peak, math.Abs(float64(x[r*48+col])))
			}
			most := max(relative*math.Abs(float64(v)), absolute*peak/c.largest) * 1.01
			if c.method == (Float4{}).Method() {
				most = max(most, peak/7) // the largest of a block may be clipped where that reduces the squared error
			}
			if d := math.Abs(float64(v) - float64(got[i])); d > most {
				t.Fatalf("%s: element %d: %g became %g, an error of %g; the bound is %g", c.variant, i, v, got[i], d, most)
			}
		}
	}
}

// Models of 4-bit floats are valid and run in the embedded engine.
func TestFloat4RunsInTheEngine(t *testing.T) {
	w := conform.Start(t)
	for _, name := range []string{"mlp", "cnn", "transformer", "recurrent", "gemm"} {
		path, out := fixture(name), filepath.Join(t.TempDir(), "out.onnx")
		v := variant{Float4{}.Method(), []string{"target=embedded"}}
		r := v.apply(t, path, out, func(o *job.Options) { o.Verify = &job.Verification{Force: true} })
		if changed(r) == 0 {
			t.Errorf("%s: nothing was changed", name)
			continue
		}
		if err := w.Check(out, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		p := r.Report.Verification
		if p == nil || p.Skipped != "" {
			t.Errorf("%s was not run", name)
			continue
		}
		for _, o := range p.Outputs {
			if db := o.Errors.DB(); db < 8 {
				t.Errorf("%s: %s: %.1f dB", name, o.Name, db)
			}
		}
	}
}

// Scales of products of float8 weights follow the product, as runtimes would hold a dequantized weight twice; other
// uses, and products that would take notably longer, have them before it. Outputs are those of the restored weights.
func TestFloat8ScalesFollowProducts(t *testing.T) {
	gemm := func(attrs ...*ir.Attr) func(s *builder, x, w *ir.Value) *ir.Value {
		return func(s *builder, x, w *ir.Value) *ir.Value {
			return s.node("Gemm", []*ir.Value{x, w, s.weight("bias", 640)}, attrs...)
		}
	}
	multiply := func(s *builder, x, w *ir.Value) *ir.Value { return s.node("MatMul", []*ir.Value{x, w}) }
	for name, c := range map[string]struct {
		in, weight []int64
		product    func(s *builder, x, w *ir.Value) *ir.Value
		row        string
	}{
		"MatMul":            {[]int64{3, 512}, []int64{512, 640}, multiply, "changed cast-product"},
		"MatMul of a batch": {[]int64{2, 3, 512}, []int64{512, 640}, multiply, "changed cast-product"},
		"Gemm": {[]int64{3, 512}, []int64{512, 640}, gemm(ir.FloatAttr("alpha", 0.5), ir.FloatAttr("beta", 2)),
			"changed cast-product"},
		"Gemm, transposed": {[]int64{512, 3}, []int64{640, 512}, gemm(ir.IntAttr("transA", 1), ir.IntAttr("transB", 1)),
			"changed cast-product"},
		"short sums": {[]int64{3, 128}, []int64{128, 640}, multiply, "changed cast-mul"},
		"behind a Transpose": {[]int64{3, 512}, []int64{640, 512}, func(s *builder, x, w *ir.Value) *ir.Value {
			return multiply(s, x, s.node("Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0)))
		}, "changed cast-mul"},
		"another use": {[]int64{3, 512}, []int64{512, 640}, func(s *builder, x, w *ir.Value) *ir.Value {
			return s.node("Add", []*ir.Value{multiply(s, x, w), s.node("ReduceSum", []*ir.Value{w}, ir.IntAttr("keepdims", 0))})
		}, "skipped"},
	} {
		for _, options := range [][]string{nil, {"per-tensor"}, {"type=e5m2"}} {
			t.Logf("%s %v", name, options)
			s := newBuilder(t, 19)
			x := s.input("x", c.in...)
			shape := append(append([]int64{}, c.in[:len(c.in)-1]...), 640)
			if c.in[0] == 512 {
				shape[0] = 3
			}
			s.output("y", c.product(s, x, s.weight("w", c.weight...)), shape...)
			v := variant{Float8{}.Method(), options}
			r := s.apply(v, 15)
			r.expect(map[string]string{"w": c.row})
		}
	}
}
