package quantize

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

var equalized = variant{Equalize{}.Method(), nil}

func TestEqualizedModelsComputeTheSame(t *testing.T) {
	many(t)
	w := conform.Start(t)
	n := 0
	for _, path := range slices.Concat(conform.Fixtures(t), conform.Part(1, 2, conform.QuickModels(t))) {
		if equivalent(t, w, equalized, path, rounding(path)) != nil {
			n++
		}
	}
	if n < 10 {
		t.Errorf("%d models were changed", n)
	}
}

// uneven is a weight whose indices along an axis differ in size by factors of up to 2^8.
func (s *builder) uneven(name string, axis int, shape ...int64) *ir.Value {
	x := make([]float32, (ir.Spec{Shape: shape}).Elems())
	inner := (ir.Spec{Shape: shape[axis+1:]}).Elems()
	sizes := make([]float64, shape[axis])
	for i := range sizes {
		sizes[i] = math.Exp2(8*s.random.Float64() - 4)
	}
	for i := range x {
		x[i] = float32(s.random.NormFloat64() * sizes[int64(i)/inner%shape[axis]])
	}
	return s.AddConst(name, quanttest.TensorOf(ir.Float, shape, x))
}

// peaks are the maximum magnitudes of a weight in the output by the indices of one axis.
func (r *result) peaks(name string, axis int) []float64 {
	r.t.Helper()
	w := named(r.t, opened(r.t, r.out).Model, "", name).Const
	e := ir.NewEval(r.t.TempDir())
	defer e.Close()
	b, err := e.ReadAll(context.Background(), w)
	if err != nil {
		r.t.Fatal(err)
	}
	inner := (ir.Spec{Shape: w.Shape[axis+1:]}).Elems()
	top := make([]float64, w.Shape[axis])
	for i, x := range kernel.Words[float32](b) {
		c := int64(i) / inner % w.Shape[axis]
		top[c] = max(top[c], math.Abs(float64(x)))
	}
	return top
}

// alike checks that two lists of ranges are equal within tolerance.
func (r *result) alike(what string, a, b []float64) {
	r.t.Helper()
	for i := range a {
		if math.Abs(math.Log(a[i]/b[i])) > 0.03 {
			r.t.Errorf("%s: channel %d: %g and %g", what, i, a[i], b[i])
		}
	}
}

func TestEqualizedWeightsHaveEqualRanges(t *testing.T) {
	w := conform.Start(t)
	t.Run("convolutions", func(t *testing.T) {
		s := newBuilder(t, 17)
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 3, 8, 8), s.uneven("a", 0, 6, 3, 3, 3), s.weight("ab", 6)})
		x = s.node("Conv", []*ir.Value{s.node("Relu", []*ir.Value{x}), s.uneven("b", 0, 6, 1, 3, 3)}, ir.IntAttr("group", 6))
		x = s.node("MaxPool", []*ir.Value{s.node("PRelu", []*ir.Value{x, s.weight("slope", 6, 1, 1)})},
			ir.IntsAttr("kernel_shape", 2, 2))
		x = s.node("Conv", []*ir.Value{x, s.uneven("c", 1, 4, 6, 1, 1), s.weight("cb", 4)})
		x = s.node("Flatten", []*ir.Value{s.node("LeakyRelu", []*ir.Value{x})})
		s.output("y", s.node("Gemm", []*ir.Value{x, s.uneven("d", 1, 5, 36)}, ir.IntAttr("transB", 1)), 1, 5)
		r := equivalent(t, w, equalized, s.save(), 100)
		r.alike("first and depthwise", r.peaks("a", 0), r.peaks("b", 0))
		r.alike("depthwise and third", r.peaks("b", 0), r.peaks("c", 1))
		var flat []float64
		for ps := range slices.Chunk(r.peaks("d", 1), 9) {
			flat = append(flat, slices.Max(ps))
		}
		r.alike("third and Gemm", r.peaks("c", 0), flat)
		if again := equalized.apply(t, r.out, filepath.Join(t.TempDir(), "again.onnx")); changed(again) != 0 {
			t.Errorf("a second run changes %d weights", changed(again))
		}
	})
	t.Run("two consumers", func(t *testing.T) {
		s := newBuilder(t, 17)
		x := s.node("MatMul", []*ir.Value{s.input("x", 2, 3, 6), s.uneven("a", 1, 6, 8)})
		x = s.node("Relu", []*ir.Value{s.node("Add", []*ir.Value{x, s.weight("ab", 8)})})
		y := s.node("MatMul", []*ir.Value{x, s.uneven("b", 0, 8, 5)})
		z := s.node("MatMul", []*ir.Value{x, s.uneven("c", 0, 8, 5)})
		s.output("y", s.node("Add", []*ir.Value{y, z}), 2, 3, 5)
		r := equivalent(t, w, equalized, s.save(), 100)
		both := r.peaks("b", 0)
		for i, p := range r.peaks("c", 0) {
			both[i] = max(both[i], p)
		}
		r.alike("what is made and read", r.peaks("a", 1), both)
	})
}

// Biases and slopes that views read are rescaled where they are stored, as those that layers read themselves.
func TestEqualizedBiasesBehindViews(t *testing.T) {
	w := conform.Start(t)
	for _, view := range []string{"", "Identity", "Reshape"} {
		s := newBuilder(t, 17)
		behind := func(name string, shape ...int64) *ir.Value {
			switch view {
			case "Identity":
				return s.node("Identity", []*ir.Value{s.weight(name, shape...)})
			case "Reshape":
				return s.node("Reshape", []*ir.Value{s.weight(name, 2, 4), s.ints(shape...)})
			}
			return s.weight(name, shape...)
		}
		x := s.node("Gemm", []*ir.Value{s.input("x", 3, 6), s.uneven("a", 1, 6, 8), behind("ab", 8)})
		x = s.node("PRelu", []*ir.Value{x, behind("slope", 8)})
		x = s.node("Gemm", []*ir.Value{x, s.uneven("b", 0, 8, 8), behind("bb", 8)})
		s.output("y", s.node("MatMul", []*ir.Value{s.node("Relu", []*ir.Value{x}), s.uneven("c", 0, 8, 5)}), 3, 5)
		r := equivalent(t, w, equalized, s.save(), 100)
		for _, name := range []string{"a", "ab", "b", "bb", "c"} {
			row := r.Report.Ledger[slices.IndexFunc(r.Report.Ledger, func(x report.Row) bool { return x.Tensor == name })]
			if row.Form != pass.Rescaled.Name {
				t.Errorf("view %q: %s has the form %q", view, name, row.Form)
			}
		}
	}
}

// Layers that are no pair are skipped, with a reason.
func TestNotEqualizedHasReasons(t *testing.T) {
	for want, between := range map[string]func(s *builder, x *ir.Value) *ir.Value{
		"one limit for all channels": func(s *builder, x *ir.Value) *ir.Value {
			zero, six := s.AddConst("zero", quanttest.TensorOf(ir.Float, nil, []float32{0})),
				s.AddConst("six", quanttest.TensorOf(ir.Float, nil, []float32{6}))
			return s.node("Clip", []*ir.Value{x, zero, six})
		},
		"channels cannot be scaled at Sigmoid": func(s *builder, x *ir.Value) *ir.Value {
			return s.node("Sigmoid", []*ir.Value{x})
		},
		"cannot be scaled at Add": func(s *builder, x *ir.Value) *ir.Value {
			return s.node("Add", []*ir.Value{s.node("Relu", []*ir.Value{x}), x})
		},
	} {
		s := newBuilder(t, 17)
		x := s.node("MatMul", []*ir.Value{s.input("x", 3, 6), s.uneven("a", 1, 6, 8)})
		s.output("y", s.node("MatMul", []*ir.Value{between(s, x), s.uneven("b", 0, 8, 5)}), 3, 5)
		res := equalized.apply(t, s.save(), filepath.Join(t.TempDir(), "out.onnx"))
		if row := res.Report.Ledger[0]; row.Tensor != "a" || !strings.Contains(fmt.Sprint(row.Status, row.Why()), want) ||
			changed(res) != 0 {
			t.Errorf("%+v, want %q", row, want)
		}
	}
}
