package quantize

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// extremeModel has a convolution, a normalization that multiplies it by 4, a depthwise convolution and a product, whose
// weights have the magnitude extreme in one channel each.
func extremeModel(t *testing.T, extreme float32) *builder {
	s := newBuilder(t, 21)
	of := func(name string, shape ...int64) *ir.Value {
		v := s.weight(name, shape...)
		x := floats(t, v)
		for i := range (ir.Spec{Shape: shape[1:]}).Elems() {
			x[i] = float32(math.Copysign(float64(extreme), float64(x[i])))
		}
		v.Const.Source = ir.Floats(x...)
		return v
	}
	each := func(x float32) *ir.Value {
		return s.AddConst("c", quanttest.TensorOf(ir.Float, []int64{16}, slices.Repeat([]float32{x}, 16)))
	}
	y := s.node("Conv", []*ir.Value{s.input("x", 1, 3, 12, 12), of("conv", 16, 3, 3, 3)})
	y = s.node("BatchNormalization", []*ir.Value{y, each(4), each(0), each(0), each(1)})
	y = s.node("Relu", []*ir.Value{y})
	y = s.node("Conv", []*ir.Value{y, of("depthwise", 16, 1, 3, 3)}, ir.IntAttr("group", 16))
	y = s.node("GlobalAveragePool", []*ir.Value{y})
	y = s.node("Flatten", []*ir.Value{y})
	s.output("y", s.node("MatMul", []*ir.Value{y, of("product", 16, 40)}), 1, 40)
	return s
}

// floats are the elements of a float32 constant.
func floats(t *testing.T, v *ir.Value) []float32 {
	t.Helper()
	b, ok := v.Const.Stored()
	if !ok {
		t.Fatalf("%s cannot be read", v.Name)
	}
	return ir.View[float32](&ir.Array{DType: ir.Float, Data: b})
}

// Weights near the limits of float32 are quantized, or skipped with a reason; no written constant is infinite or NaN.
func TestExtremeWeights(t *testing.T) {
	for _, extreme := range []float32{math.MaxFloat32, 3.4e38, 7.3e-37, 1e-40} {
		path := extremeModel(t, extreme).save()
		for _, v := range []variant{
			{StaticInt8{}.Method(), nil}, {StaticInt8{}.Method(), []string{"per-tensor", "asymmetric"}},
			{WeightInt8{}.Method(), nil}, {WeightInt8{}.Method(), []string{"asymmetric"}},
			{DynamicInt8{}.Method(), nil}, {DynamicInt8{}.Method(), []string{"asymmetric", "reduce-range"}},
			{WeightInt4{}.Method(), nil}, {WeightInt2{}.Method(), nil}, {Float8{}.Method(), nil}, {Float16{}.Method(), nil},
			{BFloat16{}.Method(), nil},
			{FoldBatchNorm{}.Method(), nil}, {Equalize{}.Method(), nil},
		} {
			t.Run(fmt.Sprintf("%g %s", extreme, v), func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "out.onnx")
				for _, row := range v.apply(t, path, out).Report.Ledger {
					if row.Status == pass.Skipped.String() && row.Reason.Code == "" {
						t.Errorf("%s is skipped without a reason", row.Tensor)
					}
				}
				for _, c := range opened(t, out).Model.Graph.Consts() {
					if c.Const.DType != ir.Float {
						continue
					}
					for _, x := range floats(t, c) {
						if x-x != 0 {
							t.Fatalf("%s has %g", c.Name, x)
						}
					}
				}
			})
		}
	}
}

// Channels whose scale would be subnormal become zeros, with scale 1, in all methods: the others are quantized as
// without them.
func TestDeadChannelsAreQuantized(t *testing.T) {
	for _, extreme := range []float32{1e-30, 1e-33, 1e-34, 1e-35, 1e-36, 7.3e-37, 1e-37, 1e-40, 1e-41} {
		for _, v := range []variant{
			{StaticInt8{}.Method(), nil}, {WeightInt8{}.Method(), nil}, {WeightInt8{}.Method(), []string{"asymmetric"}},
			{WeightInt8{}.Method(), []string{"block=16"}},
			{DynamicInt8{}.Method(), nil}, {WeightInt4{}.Method(), nil}, {WeightInt4{}.Method(), []string{"symmetric"}},
			{WeightInt4{}.Method(), []string{"algo=hqq"}}, {WeightInt2{}.Method(), nil},
			{Float8{}.Method(), nil}, {Float4{}.Method(), []string{"target=embedded"}}, {Palette{}.Method(), nil},
		} {
			s := newBuilder(t, 21)
			w := s.weight("w", 64, 48)
			x := floats(t, w)
			for i := 5; i < len(x); i += 48 {
				x[i] = float32(math.Copysign(float64(extreme), float64(x[i])))
			}
			w.Const.Source = ir.Floats(x...)
			s.output("y", s.node("MatMul", []*ir.Value{s.input("x", 4, 64), w}), 4, 48)
			out := filepath.Join(t.TempDir(), "out.onnx")
			r := v.apply(t, s.save(), out)
			if changed(r) != 1 {
				t.Errorf("%s with a channel of %g: %+v", v, extreme, r.Report.Ledger)
			}
			for _, c := range opened(t, out).Model.Graph.Consts() {
				if c.Const.DType == ir.Float {
					for _, x := range floats(t, c) {
						if x-x != 0 || x != 0 && !(math.Abs(float64(x)) >= 0x1p-126) {
							t.Errorf("%s with a channel of %g: %s has %g", v, extreme, c.Name, x)
						}
					}
				}
			}
		}
	}
}

// Weights that consist of such values are skipped: zeros in their place may be visible in the outputs. So are those of
// convolutions, whose nodes stay in float.
func TestDeadWeightsAreSkipped(t *testing.T) {
	for _, v := range []variant{{StaticInt8{}.Method(), nil}, {WeightInt8{}.Method(), nil}, {DynamicInt8{}.Method(), nil},
		{WeightInt4{}.Method(), nil}, {Float8{}.Method(), nil}} {
		for _, op := range []string{"MatMul", "Gemm", "Conv", "ConvTranspose"} {
			s := newBuilder(t, 21)
			in, of := []int64{4, 64}, []int64{64, 48}
			if strings.HasPrefix(op, "Conv") {
				in, of = []int64{4, 48, 3, 3}, []int64{48, 48, 3, 3}
			}
			w := s.weight("w", of...)
			w.Const.Source = ir.Floats(slices.Repeat([]float32{1e-40}, int(w.Const.Elems()))...)
			y := s.node(op, []*ir.Value{s.input("x", in...), w})
			y.Type = &ir.Type{Elem: ir.Float}
			s.AddOutput(y)
			r := result{v.apply(t, s.save(), filepath.Join(t.TempDir(), "out.onnx")), &comparison{variant: v}, t}
			if rows := r.rows("w"); changed(r.Result) > 0 ||
				!slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, "skipped ") }) {
				t.Errorf("%s, %s: %q", v, op, rows)
			}
		}
	}
}
