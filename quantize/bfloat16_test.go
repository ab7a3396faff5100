package quantize

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/float"
	"github.com/mcompress/mcompress/report"
)

var brain = variant{BFloat16{}.Method(), []string{"compute=bfloat16"}}

// outputOf is the first output of the model at path for x.
func outputOf(t *testing.T, path string, x []float32, shape ...int64) []float32 {
	t.Helper()
	m := opened(t, path).Model
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	got, err := e.Run(t.Context(), map[string]*ir.Array{"x": ir.ArrayOf(x, shape...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ir.View[float32](got[m.Graph.Outputs[0].Name])
}

// productBounds are the bounds of the errors of x·w, rows of k by k×n, for errors of x, with factors and products
// rounded to eight bits.
func productBounds(x, errors, w []float32, k, n int) (product, bounds []float32) {
	const u = 0x1p-8
	for i := 0; i < len(x); i += k {
		for j := range n {
			sum, size, much := 0., 0., 0.
			for r := range k {
				a, e, b := math.Abs(float64(x[i+r])), float64(errors[i+r]), math.Abs(float64(w[r*n+j]))
				sum += float64(x[i+r]) * float64(w[r*n+j])
				size += a * b
				much += (a + e) * (1 + u) * b * (1 + u)
			}
			e := much - size
			product, bounds = append(product, float32(sum)), append(bounds, float32((e+(math.Abs(sum)+e)*u)*1.0001))
		}
	}
	return product, bounds
}

// Outputs of the embedded engine in bfloat16 are within the error bound of eight bits, element by element, and differ
// from float32.
func TestBFloat16IsWithinItsBound(t *testing.T) {
	s := newBuilder(t, 22)
	w, v := s.weight("w", 64, 96), s.weight("v", 96, 32)
	h := s.node("Relu", []*ir.Value{s.node("MatMul", []*ir.Value{s.input("x", 4, 64), w})})
	h.Name = "h"
	s.output("y", s.node("MatMul", []*ir.Value{h, v}), 4, 32)
	x := make([]float32, 4*64)
	for i := range x {
		x[i] = float32(s.random.NormFloat64())
	}
	path, out := s.save(), filepath.Join(t.TempDir(), "out.onnx")
	r := result{brain.apply(t, path, out), &comparison{variant: brain, path: path, out: out}, t}
	r.kinds(map[string]ir.DType{"x": ir.Float, "h": ir.BFloat16, "y": ir.Float})
	hidden, errors := productBounds(x, make([]float32, len(x)), floats32(w.Const.Source.(ir.Mem)), 64, 96)
	for i := range hidden {
		hidden[i] = max(hidden[i], 0)
	}
	_, errors = productBounds(hidden, errors, floats32(v.Const.Source.(ir.Mem)), 96, 32)
	want, same := outputOf(t, path, x, 4, 64), true
	for i, y := range outputOf(t, out, x, 4, 64) {
		d := math.Abs(float64(y) - float64(want[i]))
		if same = same && d == 0; d > float64(errors[i]) {
			t.Errorf("element %d: %g, in float32 %g: the bound is %g", i, y, want[i], errors[i])
		}
	}
	if same {
		t.Error("nothing was rounded")
	}
}

// Models that compute in bfloat16 are valid and close to the original in the embedded engine, and the ledger names the
// engine.
func TestBFloat16RunsInTheEngine(t *testing.T) {
	w := conform.Start(t)
	for _, name := range []string{"mlp", "cnn", "transformer", "batched", "gemm", "subgraph_loop_outer", "function"} {
		t.Run(name, func(t *testing.T) {
			r := &comparison{variant: brain, path: fixture(name), out: filepath.Join(t.TempDir(), "out.onnx")}
			res := brain.apply(t, r.path, r.out, func(o *job.Options) { o.Verify = &job.Verification{Force: true} })
			r.sameInterface(t, opened(t, r.path).Model, opened(t, r.out).Model)
			r.valid(t, w)
			if !slices.ContainsFunc(res.Report.Ledger, func(row report.Row) bool {
				return strings.Contains(row.Why(), float.BFloat16Type.Note.Detail)
			}) {
				t.Errorf("the ledger does not say %q", float.BFloat16Type.Note)
			}
			p := res.Report.Verification
			if p == nil || p.Skipped != "" {
				t.Fatal("it was not run")
			}
			for _, o := range p.Outputs {
				if db := o.Errors.DB(); db < 25 {
					t.Errorf("%s: %.1f dB", o.Name, db)
				}
			}
		})
	}
}
