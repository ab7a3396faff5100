package quantize

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
)

var (
	int4 = variant{WeightInt4{}.Method(), nil}
	int2 = variant{WeightInt2{}.Method(), nil}
)

// blockwiseVariants are the options of blockwise quantization.
func blockwiseVariants() []variant {
	return []variant{
		int4,
		int2,
		{WeightInt4{}.Method(), []string{"symmetric", "weight-type=int4"}},
		{WeightInt4{}.Method(), []string{"symmetric", "block=16"}},
		{WeightInt4{}.Method(), []string{"weight-type=int4", "block=64", "search=minmax"}},
		{WeightInt4{}.Method(), []string{"per-channel"}},
		{WeightInt4{}.Method(), []string{"algo=hqq"}},
		{WeightInt2{}.Method(), []string{"symmetric", "weight-type=int2", "block=16"}},
		{WeightInt8{}.Method(), []string{"block=32"}},
		{WeightInt8{}.Method(), []string{"block=128", "asymmetric", "weight-type=uint8"}},
		{WeightInt8{}.Method(), []string{"search=mse", "asymmetric"}},
	}
}

// Every output is valid, smaller, of the same interface, and runs where the original does.
func TestBlockwiseOutputs(t *testing.T) {
	many(t)
	w := conform.Start(t)
	for i, path := range conform.Fixtures(t) {
		for _, v := range conform.Sampled(i, blockwiseVariants()) {
			t.Run(v.String()+" "+label(path), func(t *testing.T) { try(t, w, v, path) })
		}
	}
	for _, path := range conform.Part(1, 2, conform.QuickModels(t)) {
		t.Run(label(path), func(t *testing.T) { try(t, w, int4, path) })
	}
}

// The outputs are those of the original with the restored weights.
func TestBlockwiseEqualsTheRestoredModel(t *testing.T) {
	w := conform.Start(t)
	all := blockwiseVariants()
	for _, v := range blockwiseVariants()[:4] {
		all = append(all, v.on("ort"), v.on("openvino"))
	}
	for i, path := range conform.Fixtures(t) {
		for _, v := range conform.Part(i, 4, all) {
			t.Run(v.String()+" "+label(path), func(t *testing.T) {
				dir := t.TempDir()
				out, twin := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")
				if restoredModel(t, v, path, out, twin) == 0 {
					return
				}
				o := conform.Options{Level: "basic", Inputs: recorded(t, path)}
				outputs, err := w.Compare(twin, out, o)
				if err != nil {
					if _, before := w.Run(path, o); before == nil {
						t.Error(err)
					}
					return
				}
				if s := conform.LowestSQNR(outputs); s < 70 {
					t.Errorf("%.1f dB", s)
				}
			})
		}
	}
}

// Products become products of quantized weights, with and without a bias; folded weights leave the graph unchanged.
func TestBlockwiseProductsFuse(t *testing.T) {
	w := conform.Start(t)
	for _, v := range blockwiseVariants() {
		for name, want := range map[string]int{"mlp": 3, "cnn": 2, "gemm": 13, "function": 1, "subgraph_if": 2,
			"subgraph_loop_outer": 1, "transformer": 13} {
			if name == "transformer" && slices.Contains(v.options, "per-channel") {
				want = 12 // the head is tied to the embeddings: dense
			}
			if v.method == (WeightInt2{}).Method() && (name == "mlp" || name == "cnn") {
				want-- // the head, with ten columns, would be fused incorrectly: dense
			}
			ops := optimizedOps(t, w, v, name)
			if ops[nBits] != want || ops["DequantizeLinear"] > 0 {
				t.Errorf("%s %s: %d %s, want %d: %v", v, name, ops[nBits], nBits, want, ops)
			}
		}
	}
}

// Where the target or the opset has no data type, bytes hold several values, which every runtime unpacks.
func TestBytePacked(t *testing.T) {
	for _, v := range []variant{int4, int2, {WeightInt4{}.Method(), []string{"symmetric", "block=16"}}} {
		for _, elem := range []ir.DType{ir.Float, ir.Float16} {
			s := newBuilder(t, 10)
			s.elem = elem
			x := s.input("x", 3, 48)
			y := s.node("MatMul", []*ir.Value{x, s.weight("w", 48, 64)})
			y = s.node("Resize", []*ir.Value{y,
				s.AddConst("scales", quanttest.TensorOf(ir.Float, []int64{2}, []float32{2, 0.5}))})
			s.output("y", y, 6, 32)
			s.apply(v.on("standard-ops"), 4).expect(
				map[string]string{"w": "changed cast-mul dense at run time: ort-1.20 lacks fast products"})
			s.apply(v.on("ort,standard-ops"), 4).expect(
				map[string]string{"w": "changed cast-mul dense at run time: opset 10, Resize"})
			dir := t.TempDir()
			out, twin := filepath.Join(dir, "out.onnx"), filepath.Join(dir, "twin.onnx")
			restoredModel(t, v.on("standard-ops"), s.save(), out, twin)
			outputs, err := conform.Start(t).Compare(twin, out, conform.Options{})
			if err != nil || conform.LowestSQNR(outputs) < 100 {
				t.Errorf("%s: %v, %v", v, outputs, err)
			}
		}
	}
}

func TestBlockwiseNonFinite(t *testing.T) {
	onFixture(t, int4, "nonfinite").expect(map[string]string{"w_nan": "skipped values not finite: NaN",
		"w_inf": "skipped values not finite: infinities", "w_sound": "changed matmul-nbits"})
}

// Quantized values of lookups stay packed at run time if the rows and their zero points are whole bytes. Else they take
// a byte each, and the ledger has that size.
func TestBlockwiseTablesUnpackAtRunTime(t *testing.T) {
	for width, unpacked := range map[int64]map[string]int64{
		128: {"ort-1.20": 0, "ort": 0},
		// Zero points below 1024 are bytes already, and the table of bytes is folded.
		96: {"ort-1.20": 64*96/2 - 256*2, "ort": 64*96/2 + 64*3/2},
	} {
		s := newBuilder(t, 17)
		ids := s.node("Cast", []*ir.Value{s.input("x", 3)}, ir.IntAttr("to", int64(ir.Int64)))
		s.output("y", s.node("Gather", []*ir.Value{s.weight("w", 64, width), ids}), 3, width)
		for v, more := range unpacked {
			for _, row := range s.apply(int4.on(v), 10).Report.Ledger {
				if row.Tensor == "w" && row.After.RuntimeBytes != row.After.Bytes+more {
					t.Errorf("%s, %d columns: %d bytes, %d at run time", v, width, row.After.Bytes, row.After.RuntimeBytes)
				}
			}
		}
	}
}

func TestBlockSizes(t *testing.T) {
	for _, bad := range []string{"8", "48", "512", "x"} {
		if err := new(BlockSize).Set(bad); err == nil {
			t.Errorf("a block of %s rows is taken", bad)
		}
	}
}
