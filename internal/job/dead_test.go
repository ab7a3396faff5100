package job_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// withDeadColumns writes x·w + b, in which column 3 of w is too small for a scale, and column 5 is zeros.
func withDeadColumns(t *testing.T, bias []float32) string {
	t.Helper()
	const k, n = 64, 16
	r, w := rand.New(rand.NewPCG(5, 6)), make([]float32, k*n)
	for i := range w {
		switch w[i] = float32(r.NormFloat64()); i % n {
		case 3:
			w[i] *= 1e-39
		case 5:
			w[i] = 0
		}
	}
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	x := m.Graph.NewValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 4}, {N: k}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	y := m.Graph.Insert(nil, "Gemm", []*ir.Value{x, m.Graph.AddConst("w", quanttest.TensorOf(ir.Float, []int64{k, n}, w)),
		m.Graph.AddConst("b", quanttest.TensorOf(ir.Float, []int64{n}, bias))})
	y.Type = &ir.Type{Elem: ir.Float}
	m.Graph.AddOutput(y)
	path := filepath.Join(t.TempDir(), "dead.onnx")
	if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// The note on a weight counts the channels, or blocks of 32 of its 64 rows, that are stored as zeros although they
// are none.
func TestDeadChannelsAreNoted(t *testing.T) {
	for m, want := range map[string]string{"weight-int8": "1 of 16", "dynamic-int8": "1 of 16", "static-int8": "1 of 16",
		"float8": "1 of 16", "weight-int4": "2 of 32"} {
		r := run(t, options(withDeadColumns(t, make([]float32, 16)), step(t, method(t, m))))
		for _, w := range r.Report.Weights {
			i := slices.IndexFunc(w.Notes, func(n report.Note) bool { return n.Code == pass.DeadChannels })
			if w.Tensor == "w" && (i < 0 || w.Notes[i].Detail != want) {
				t.Errorf("%s: notes %v, want %s", m, w.Notes, want)
			}
			if w.Tensor != "w" && i >= 0 {
				t.Errorf("%s: %s has a note", m, w.Tensor)
			}
		}
	}
}

// The output of a channel of zeros is its bias, also where that is a small part of the scale of the inputs.
func TestBiasOfDeadChannels(t *testing.T) {
	for _, size := range []float64{1e-3, 1, 100} {
		bias := make([]float32, 16)
		for i := range bias {
			bias[i] = float32(size * float64(i-7) / 7)
		}
		r := run(t, options(withDeadColumns(t, bias), step(t, method(t, "static-int8"), "--activation-sqnr", "0")))
		f, err := onnx.Open(r.Output)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		e, err := engine.Open(t.Context(), f.Model, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		x := ir.NewArray(ir.Float, 4, 64)
		for i := range ir.View[float32](x) {
			ir.View[float32](x)[i] = float32(i%9) - 4
		}
		out, err := e.Run(t.Context(), map[string]*ir.Array{"x": x}, nil)
		if err != nil {
			t.Fatal(err)
		}
		y := ir.View[float32](out[f.Model.Graph.Outputs[0].Name])
		for _, j := range []int{3, 5} {
			if d := math.Abs(float64(y[j] - bias[j])); !(d <= 1e-5+1e-4*size) {
				t.Errorf("biases of %g: the output of channel %d is %g, its bias %g", size, j, y[j], bias[j])
			}
		}
	}
}
