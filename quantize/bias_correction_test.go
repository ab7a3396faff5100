package quantize

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// means are those of the columns of an output.
func means(t *testing.T, w *conform.Worker, path string, seed uint64) []float64 {
	t.Helper()
	out, err := w.Run(path, conform.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	n := out[0].Shape[len(out[0].Shape)-1]
	m := make([]float64, n)
	for i := range len(out[0].Data) / 4 {
		m[i%n] += float64(math.Float32frombits(binary.LittleEndian.Uint32(out[0].Data[4*i:]))) / float64(len(out[0].Data)/4/n)
	}
	return m
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// On other inputs of the same distribution the means of outputs are much closer to those of the float model, wherever
// the bias is added, and also without a bias.
func TestBiasCorrectionRestoresMeans(t *testing.T) {
	w := conform.Start(t)
	for name, build := range map[string]func(s *builder, x *ir.Value) *ir.Value{
		"MatMul": func(s *builder, x *ir.Value) *ir.Value {
			return s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 8)})
		},
		"MatMul and Add": func(s *builder, x *ir.Value) *ir.Value {
			return s.node("Add", []*ir.Value{s.weight("b", 8), s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 8)})})
		},
		"Gemm": func(s *builder, x *ir.Value) *ir.Value {
			in := []*ir.Value{x, s.weight("w", 8, 64), s.weight("b", 1, 8)}
			return s.node("Gemm", in, ir.IntAttr("transB", 1), ir.FloatAttr("alpha", 0.5), ir.FloatAttr("beta", 3))
		},
		"Gemm without C": func(s *builder, x *ir.Value) *ir.Value {
			return s.node("Gemm", []*ir.Value{x, s.weight("w", 64, 8)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBuilder(t, 17)
			x := s.node("Relu", []*ir.Value{s.input("x", 400, 64)}) // whose mean is not zero
			s.output("y", build(s, x), 400, 8)
			path, dir := s.save(), t.TempDir()
			plain, corrected := filepath.Join(dir, "plain.onnx"), filepath.Join(dir, "corrected.onnx")
			options := []string{"per-tensor", "reduce-range"} // coarse scales
			variant{DynamicInt8{}.Method(), options}.apply(t, path, plain)
			r := variant{DynamicInt8{}.Method(), append(options, "bias-correction")}.apply(t, path, corrected)
			want := means(t, w, path, 3)
			before, after := distance(means(t, w, plain, 3), want), distance(means(t, w, corrected, 3), want)
			if after > before/2 {
				t.Errorf("means are %.4f off, without correction %.4f", after, before)
			}
			if err := w.Check(corrected, true); err != nil {
				t.Error(err)
			}
			for _, row := range r.Report.Ledger {
				if row.Tensor == "w" && (row.Status != pass.Changed.String() || row.Form != pass.MatMulInteger.Name) {
					t.Errorf("%+v", row)
				}
			}
		})
	}
}
