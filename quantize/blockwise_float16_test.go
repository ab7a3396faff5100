package quantize

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// given is a float16 value of standard normal numbers, the same in any run: the input is multiplied by 0.
func (s *builder) given(shape ...int64) *ir.Value {
	nothing := s.node("Mul", []*ir.Value{s.input("x", shape...),
		s.AddConst("nothing", quanttest.TensorOf(ir.Float16, nil, []float32{0}))})
	return s.node("Add", []*ir.Value{nothing, s.weight("given", shape...)})
}

func (s *builder) int(i int64) *ir.Value {
	return s.AddConst("i", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{}}, Source: ir.Ints(i)})
}

// float16Model is a float16 model of all consumers of blockwise weights: products with and without biases and factors,
// a lookup, a table of a lookup and a product, and a convolution, which is folded.
func float16Model(t *testing.T) *builder {
	s := newFloat16Builder(t, 25)
	x := s.given(3, 81)
	y := s.node("MatMul", []*ir.Value{x, s.weight("part", 81, 40)})
	y = s.node("Gemm", []*ir.Value{y, s.weight("turned", 96, 40), s.weight("bias", 96)}, ir.IntAttr("transB", 1))
	y = s.node("Gemm", []*ir.Value{y, s.weight("scaled", 96, 64), s.weight("c", 1, 64)}, ir.FloatAttr("alpha", 0.5),
		ir.FloatAttr("beta", 2))
	image := s.node("Reshape", []*ir.Value{y, s.ints(1, 3, 8, 8)})
	s.output("y", s.node("Conv", []*ir.Value{image, s.weight("kernel", 64, 3, 5, 5)}), 1, 64, 4, 4)
	ids := s.node("Clip", []*ir.Value{s.node("Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Int64))), s.int(0),
		s.int(47)})
	tied := s.weight("tied", 48, 64)
	rows := s.node("Add", []*ir.Value{s.node("Gather", []*ir.Value{tied, ids}),
		s.node("Gather", []*ir.Value{s.weight("table", 48, 64), ids})})
	s.output("z", s.node("MatMul", []*ir.Value{rows, s.node("Transpose", []*ir.Value{tied}, ir.IntsAttr("perm", 1, 0))}),
		3, 81, 48)
	return s
}

// Float16 models have float16 scales in every form. Outputs are valid, contain MatMulNBits in ONNX Runtime, and equal
// those of the restored weights, there and in the embedded engine, except for float16 rounding of activations.
func TestBlockwiseFloat16(t *testing.T) {
	const floor = 60
	w, path := conform.Start(t), float16Model(t).save()
	for _, v := range append(blockwiseVariants(), nbitsVariants()...) {
		v := v.on("ort")
		t.Run(v.String(), func(t *testing.T) {
			if try(t, w, v, path) == nil {
				t.Fatal("nothing was changed")
			}
			out, twin := filepath.Join(t.TempDir(), "out.onnx"), filepath.Join(t.TempDir(), "twin.onnx")
			if n := restoredModel(t, v, path, out, twin); n != 6 {
				t.Errorf("%d weights were changed, want 6", n)
			}
			for _, c := range opened(t, out).Model.Graph.Consts() {
				if c.Const.DType == ir.Float && c.Const.Elems() > 1 {
					t.Errorf("%s is %s%v", c.Name, c.Const.DType, c.Const.Shape)
				}
			}
			outputs, err := w.Compare(twin, out, conform.Options{Level: "basic"})
			if err != nil || conform.LowestSQNR(outputs) < floor {
				t.Errorf("%v: %.1f dB", err, conform.LowestSQNR(outputs))
			}
			sameEngines(t, w, out, floor)
			ops, err := w.OptimizedOps(out, conform.Options{})
			if err != nil || ops[nBits] != fusedProducts(v) || ops["DequantizeLinear"] > 0 {
				t.Errorf("%d %s, want %d: %v %v", ops[nBits], nBits, fusedProducts(v), ops, err)
			}
		})
	}
}

// fusedProducts is how many float16 products stay quantized: all of them, except the one with the table where whole
// rows are blocks.
func fusedProducts(v variant) int {
	if slices.Contains(v.options, "per-channel") {
		return 3
	}
	return 4
}

// sameEngines compares the outputs of the model at path, which do not depend on its inputs, in the embedded engine with
// ONNX Runtime.
func sameEngines(t *testing.T, w *conform.Worker, path string, floor float64) {
	t.Helper()
	theirs, err := w.Run(path, conform.Options{Level: "basic"})
	if err != nil {
		t.Fatal(err)
	}
	m := opened(t, path).Model
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ours, err := e.Run(t.Context(), map[string]*ir.Array{"x": ir.NewArray(ir.Float16, 3, 81)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range theirs {
		var signal, noise float64
		got, want := widened(ours[o.Name].Data), widened(o.Data)
		for i, v := range want {
			signal, noise = signal+float64(v)*float64(v), noise+math.Pow(float64(got[i]-v), 2)
		}
		if db := 10 * math.Log10(signal/noise); len(got) != len(want) || !(db >= floor) {
			t.Errorf("%s: the engines are %.1f dB apart", o.Name, db)
		}
	}
}

// widened are float16 values.
func widened(b []byte) []float32 {
	x := make([]float32, len(b)/2)
	kernel.F32FromF16(x, kernel.Words[uint16](b))
	return x
}

// Weights near either end of float16: those that would overflow are skipped, and subnormal ones are exact.
func TestFloat16AtTheEndsOfTheRange(t *testing.T) {
	for _, v := range []variant{int4, {WeightInt4{}.Method(), []string{"form=matmulnbits"}},
		{WeightInt8{}.Method(), []string{"block=32", "asymmetric"}}} {
		s := newFloat16Builder(t, 21)
		x := s.input("x", 4, 64)
		for name, values := range map[string][]float32{"large": {65504}, "tiny": {-3 * 0x1p-24, 0x1p-24, 0, 2 * 0x1p-24},
			"none": {0}} {
			w := make([]float32, 64*96)
			for i := range w {
				w[i] = values[i%len(values)]
			}
			s.output("y_"+name, s.node("MatMul",
				[]*ir.Value{x, s.AddConst(name, quanttest.TensorOf(ir.Float16, []int64{64, 96}, w))}), 4, 96)
		}
		out, twin := filepath.Join(t.TempDir(), "out.onnx"), filepath.Join(t.TempDir(), "twin.onnx")
		path := s.save()
		restoredModel(t, v, path, out, twin)
		result{v.apply(t, path, out), &comparison{variant: v}, t}.expect(map[string]string{
			"large": "skipped values not representable: dequantized values up to 65", "tiny": "changed", "none": "changed",
		})
		outputs, err := conform.Start(t).Compare(path, twin, conform.Options{Level: "basic"})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outputs {
			if !o.Equal {
				t.Errorf("%s: %s: %.1f dB", v, o.Name, float64(o.SQNR))
			}
		}
	}
}
