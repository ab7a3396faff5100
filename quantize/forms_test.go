package quantize

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

const (
	dynamicMatMul  = "com.microsoft.DynamicQuantizeMatMul"
	integerToFloat = "com.microsoft.MatMulIntegerToFloat"
	nBits          = "com.microsoft.MatMulNBits"
	blockedConv    = "com.microsoft.nchwc.Conv"
)

// The newest ONNX Runtime's optimised graphs of our forms for it: integer kernels without rest of the pattern around
// them. Operators that are not in want may occur; those in left must not.
var fused = []struct {
	method  variant
	fixture string
	want    map[string]int
}{
	{variant{DynamicInt8{}.Method(), nil}, "mlp", map[string]int{dynamicMatMul: 3}},
	{variant{DynamicInt8{}.Method(), []string{"asymmetric"}}, "mlp", map[string]int{dynamicMatMul: 3}},
	{variant{DynamicInt8{}.Method(), []string{"per-tensor"}}, "mlp", map[string]int{dynamicMatMul: 3}},
	{variant{DynamicInt8{}.Method(), []string{"weight-type=uint8"}}, "mlp", map[string]int{dynamicMatMul: 3}},
	{variant{DynamicInt8{}.Method(), []string{"reduce-range"}}, "mlp", map[string]int{dynamicMatMul: 3}},
	{variant{DynamicInt8{}.Method(), nil}, "left", map[string]int{integerToFloat: 2}},
	{variant{DynamicInt8{}.Method(), []string{"asymmetric"}}, "left", map[string]int{dynamicMatMul: 2, "Transpose": 2}},
	{variant{DynamicInt8{}.Method(), nil}, "batched", map[string]int{dynamicMatMul: 3}},
	{variant{DynamicInt8{}.Method(), []string{"asymmetric"}}, "batched", map[string]int{dynamicMatMul: 3}},
	{variant{DynamicInt8{}.Method(), nil}, "vector", map[string]int{dynamicMatMul: 2, integerToFloat: 1}},
	{variant{DynamicInt8{}.Method(), nil}, "gemm", map[string]int{integerToFloat: 14}},
	{variant{DynamicInt8{}.Method(), nil}, "shared", map[string]int{dynamicMatMul: 3}},
	// Equal products are one.
	{variant{DynamicInt8{}.Method(), nil}, "duplicated", map[string]int{integerToFloat: 2, "DynamicQuantizeLinear": 1}},
	{variant{DynamicInt8{}.Method(), nil}, "function", map[string]int{dynamicMatMul: 1}},
	{variant{DynamicInt8{}.Method(), nil}, "subgraph_if", map[string]int{dynamicMatMul: 2}},
	{variant{DynamicInt8{}.Method(), nil}, "subgraph_if_outer", map[string]int{dynamicMatMul: 2}},
	{variant{DynamicInt8{}.Method(), nil}, "subgraph_loop_outer", map[string]int{dynamicMatMul: 1}},
	{variant{DynamicInt8{}.Method(), nil}, "opset7", map[string]int{dynamicMatMul: 2}},
	{variant{WeightInt8{}.Method(), nil}, "mlp", map[string]int{nBits: 3}},
	{variant{WeightInt8{}.Method(), []string{"asymmetric"}}, "mlp", map[string]int{nBits: 3}},
	{variant{WeightInt8{}.Method(), []string{"per-tensor", "weight-type=uint8"}}, "mlp", map[string]int{nBits: 3}},
	{variant{WeightInt8{}.Method(), nil}, "cnn", map[string]int{nBits: 2, blockedConv: 3}},
	{variant{WeightInt8{}.Method(), nil}, "gemm", map[string]int{nBits: 13}},
	{variant{WeightInt8{}.Method(), nil}, "duplicated", map[string]int{nBits: 1}},
	{variant{WeightInt8{}.Method(), nil}, "function", map[string]int{nBits: 1}},
	{variant{WeightInt8{}.Method(), nil}, "subgraph_if", map[string]int{nBits: 2}},
	{variant{WeightInt8{}.Method(), nil}, "subgraph_loop_outer", map[string]int{nBits: 1}},
}

func TestIntegerFormsFuse(t *testing.T) {
	w := conform.Start(t)
	for _, c := range fused {
		t.Run(c.method.String()+" "+c.fixture, func(t *testing.T) {
			ops := optimizedOps(t, w, c.method, c.fixture)
			for op, n := range c.want {
				if ops[op] != n {
					t.Errorf("%d %s, want %d; the graph holds %v", ops[op], op, n, ops)
				}
			}
			for _, op := range []string{"MatMulInteger", "DequantizeLinear"} {
				if ops[op] > 0 {
					t.Errorf("%d %s are left; the graph holds %v", ops[op], op, ops)
				}
			}
		})
	}
}

// A table is looked up in quantized values and scales, next to the fused products that share it.
func TestEmbeddingsAreLookedUpQuantized(t *testing.T) {
	w := conform.Start(t)
	for _, v := range []variant{
		{DynamicInt8{}.Method(), []string{"embeddings"}},
		{DynamicInt8{}.Method(), []string{"embeddings", "weight-type=uint8"}},
		{WeightInt8{}.Method(), nil},
		{WeightInt8{}.Method(), []string{"weight-type=uint8"}},
	} {
		ops := optimizedOps(t, w, v, "transformer")
		if n := ops[dynamicMatMul] + ops[integerToFloat] + ops[nBits]; n != 13 || ops["Gather"] != 2 ||
			ops["DequantizeLinear"] != 0 {
			t.Errorf("%s: 12 layers and the head should be fused and two Gathers look up quantized values and scales: %v", v,
				ops)
		}
	}
}

// Folded forms leave the graph unchanged: convolutions keep their layout, recurrent layers their prepacked weights.
func TestFoldedFormsKeepTheGraph(t *testing.T) {
	w := conform.Start(t)
	for _, c := range []struct {
		method  variant
		fixture string
	}{
		{variant{WeightInt8{}.Method(), nil}, "convtranspose"},
		{variant{WeightInt8{}.Method(), []string{"asymmetric"}}, "convtranspose"},
		{variant{WeightInt8{}.Method(), []string{"weight-type=uint8", "per-tensor"}}, "recurrent"},
		{variant{WeightInt8{}.Method(), nil}, "recurrent"},
		{variant{WeightInt8{}.Method(), nil}, "batched"},
		{variant{WeightInt8{}.Method(), nil}, "left"},
		{variant{WeightInt8{}.Method(), nil}, "shared"},
		{variant{Float16{}.Method(), nil}, "mlp"},
		{variant{Float16{}.Method(), nil}, "cnn"},
		{variant{Float16{}.Method(), nil}, "recurrent"},
		{variant{Float16{}.Method(), nil}, "transformer"},
		{variant{Float16{}.Method(), nil}, "subgraph_nested"},
	} {
		want, err := w.OptimizedOps(fixture(c.fixture), conform.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.fixture == "transformer" {
			want["Cast"]++ // of the rows of its table
		}
		if got := optimizedOps(t, w, c.method, c.fixture); !maps.Equal(got, want) {
			t.Errorf("%s %s: optimised to %v, the original to %v", c.method, c.fixture, got, want)
		}
	}
}

// Products without fast kernels in every version of the target are folded: the graph is the original's.
func TestFormsWithoutKernelsKeepTheGraph(t *testing.T) {
	w := conform.Start(t)
	for _, v := range []variant{{WeightInt8{}.Method(), nil}, {WeightInt8{}.Method(), []string{"asymmetric"}},
		int4.on("standard-ops"), int2.on("standard-ops"),
		variant{WeightInt4{}.Method(), []string{"symmetric"}}.on("standard-ops"),
		{WeightInt8{}.Method(), []string{"block=32", "asymmetric"}}} {
		for _, name := range []string{"mlp", "cnn", "batched", "recurrent", "subgraph_if"} {
			want, err := w.OptimizedOps(fixture(name), conform.Options{})
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out.onnx")
			v.apply(t, fixture(name), out)
			if got, err := w.OptimizedOps(out, conform.Options{}); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s %s: optimised to %v, the original to %v; %v", v, name, got, want, err)
			}
		}
	}
}

// By default products stay packed with 4 bits, also those of 2 bits in the file. With 8 bits ONNX Runtime folds only
// the Cast of each large matrix, as it keeps what folded nodes compute.
func TestDefaultProducts(t *testing.T) {
	w := conform.Start(t)
	for method, want := range map[*pass.Method]map[string]int{
		WeightInt4{}.Method(): {nBits: 2},                                   // the newest version adds the bias in it
		WeightInt2{}.Method(): {nBits: 2},                                   // with 4 bits in memory
		WeightInt8{}.Method(): {"MatMul": 1, "Mul": 1, "Add": 1, "Gemm": 1}, // the second matrix is small
	} {
		s := newBuilder(t, 17)
		x := s.node("Gemm", []*ir.Value{s.input("x", 3, 512), s.weight("large", 512, 512), s.weight("bias", 512)})
		s.output("y", s.node("Gemm", []*ir.Value{x, s.weight("small", 512, 64)}), 3, 64)
		v := variant{method, nil}
		s.apply(v, 1)
		out, twin := filepath.Join(t.TempDir(), "out.onnx"), filepath.Join(t.TempDir(), "twin.onnx")
		restoredModel(t, v, s.save(), out, twin)
		if got, err := w.OptimizedOps(out, conform.Options{}); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: optimised to %v, want %v; %v", v, got, want, err)
		}
		if outputs, err := w.Compare(twin, out, conform.Options{}); err != nil || conform.LowestSQNR(outputs) < 100 {
			t.Errorf("%s: %v, %v", v, outputs, err)
		}
	}
}

func optimizedOps(t *testing.T, w *conform.Worker, v variant, name string) map[string]int {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.onnx")
	v.on("ort").apply(t, fixture(name), out)
	ops, err := w.OptimizedOps(out, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ops
}
