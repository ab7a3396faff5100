package quantize

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// nbitsVariants are the options of MatMulNBits.
func nbitsVariants() []variant {
	return []variant{
		{WeightInt4{}.Method(), []string{"form=matmulnbits"}},
		{WeightInt4{}.Method(), []string{"form=matmulnbits", "symmetric", "block=64", "weight-type=int4"}},
		{WeightInt4{}.Method(), []string{"form=matmulnbits", "algo=hqq", "block=16"}},
		{WeightInt2{}.Method(), []string{"form=matmulnbits", "block=16"}},
		{WeightInt8{}.Method(), []string{"form=matmulnbits", "accuracy-level=0"}},
		{WeightInt8{}.Method(), []string{"form=matmulnbits", "accuracy-level=0", "asymmetric", "block=128"}},
	}
}

// Products are MatMulNBits at the original opset, which other weights raise at most to that of their forms; outputs are
// valid, run, and equal those of the restored weights in ONNX Runtime and in the embedded engine.
func TestMatMulNBitsOutputs(t *testing.T) {
	w := conform.Start(t)
	for _, v := range nbitsVariants() {
		for name, want := range map[string]int{"mlp": 3, "cnn": 2, "gemm": 13, "function": 1, "subgraph_if": 2, "opset7": 2,
			"transformer": 13} {
			t.Run(v.String()+" "+name, func(t *testing.T) {
				path := fixture(name)
				if r := try(t, w, v, path); r == nil {
					t.Fatal("nothing was changed")
				}
				dir := t.TempDir()
				out, twin := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")
				restoredModel(t, v, path, out, twin)
				if n := nbitsProducts(t, out); n != want {
					t.Errorf("%d MatMulNBits, want %d", n, want)
				}
				if got, was := opened(t, out).Model.Opset(""), opened(t, path).Model.Opset(""); got != was && got != 10 {
					t.Errorf("opset %d became %d", was, got)
				}
				outputs, err := w.Compare(twin, out, conform.Options{Level: "basic"})
				if err != nil || conform.LowestSQNR(outputs) < 70 {
					t.Errorf("%v: %.1f dB", err, conform.LowestSQNR(outputs))
				}
				sameModels(t, twin, out)
			})
		}
	}
}

// nbitsProducts counts the products in the model at path.
func nbitsProducts(t *testing.T, path string) (n int) {
	t.Helper()
	for m := range opened(t, path).Model.Nodes() {
		if m.Op.Domain == pass.MicrosoftDomain && m.Op.Type == "MatMulNBits" {
			n++
		}
	}
	return n
}

// Without float zero points, quantized values, scales and zero points are those of the standard form.
func TestMatMulNBitsEqualsTheStandardForm(t *testing.T) {
	w := conform.Start(t)
	for _, more := range [][]string{nil, {"symmetric"}, {"block=128"}} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a.onnx"), filepath.Join(dir, "b.onnx")
		variant{WeightInt4{}.Method(), more}.on("ort").apply(t, fixture("mlp"), a)
		variant{WeightInt4{}.Method(), append([]string{"form=matmulnbits"}, more...)}.apply(t, fixture("mlp"), b)
		outputs, err := w.Compare(a, b, conform.Options{Level: "basic"})
		if err != nil || conform.LowestSQNR(outputs) < 100 {
			t.Errorf("%v: %v, %.1f dB", more, err, conform.LowestSQNR(outputs))
		}
	}
}

// Shapes without fixture: a partial last block, fewer rows than a block, odd numbers of zero points, factors and biases
// of Gemm.
func TestMatMulNBitsShapes(t *testing.T) {
	// Of 2 bits in the file, 4 in memory.
	wide := []variant{{WeightInt2{}.Method(), nil}, {WeightInt2{}.Method(), []string{"symmetric", "block=16"}}}
	for _, v := range append(nbitsVariants(), wide...) {
		s := newBuilder(t, 13)
		x := s.input("x", 3, 81)
		y := s.node("MatMul", []*ir.Value{x, s.weight("part", 81, 40)})
		y = s.node("Gemm", []*ir.Value{y, s.weight("turned", 96, 40), s.weight("bias", 96)}, ir.IntAttr("transB", 1))
		y = s.node("Gemm", []*ir.Value{y, s.weight("scaled", 96, 77), s.weight("c", 1, 77)}, ir.FloatAttr("alpha", 0.5),
			ir.FloatAttr("beta", 2))
		y = s.node("MatMul", []*ir.Value{y, s.weight("again", 77, 72)})
		s.output("y", s.node("MatMul", []*ir.Value{y, s.weight("few", 72, 33)}), 3, 33)
		dir := t.TempDir()
		out, twin := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")
		restoredModel(t, v, s.save(), out, twin)
		if n := nbitsProducts(t, out); n != 5 {
			t.Errorf("%s: %d MatMulNBits", v, n)
		}
		outputs, err := conform.Start(t).Compare(twin, out, conform.Options{Level: "basic"})
		if err != nil || conform.LowestSQNR(outputs) < 70 {
			t.Errorf("%s: %v: %.1f dB", v, err, conform.LowestSQNR(outputs))
		}
		sameModels(t, twin, out)
	}
}
