package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// positive are numbers between 0.2 and 0.9.
func positive(seed uint64, shape ...int64) *ir.Array {
	a := separated(seed, shape...)
	x := ir.View[float64](a)
	for i := range x {
		x[i] = 0.2 + 0.7*(x[i]/0.1+float64(len(x)/2))/float64(len(x)+1)
	}
	return a
}

// shifted adds to all elements.
func shifted(a *ir.Array, by float64) *ir.Array {
	for i := range ir.View[float64](a) {
		ir.View[float64](a)[i] += by
	}
	return a
}

func bools(bs ...bool) *ir.Array { return ir.ArrayOf(bs, int64(len(bs))) }

func integers(shape []int64, is ...int64) *ir.Array { return ir.ArrayOf(is, shape...) }

func TestElementwise(t *testing.T) {
	x, row, column := values(1, 2, 3), values(2, 3), values(3, 2, 1)
	checkAll(t, []probe{
		{op: onnx("Add"), in: []*ir.Array{x, row}},
		{op: onnx("Add"), in: []*ir.Array{values(1, 2, 1, 3), values(2, 4, 1)}},
		{op: onnx("Sub"), in: []*ir.Array{x, column}},
		{op: onnx("Sub"), in: []*ir.Array{row, x}},
		{op: onnx("Mul"), in: []*ir.Array{x, column}},
		{op: onnx("Mul"), in: []*ir.Array{values(1, 1), values(2, 2, 2)}},
		{op: onnx("Div"), in: []*ir.Array{x, positive(4, 3)}},
		{op: onnx("Div"), in: []*ir.Array{row, positive(4, 2, 3)}},
		{op: onnx("Neg"), in: []*ir.Array{x}},
		{op: onnx("Identity"), in: []*ir.Array{x}},
		{op: onnx("Pow"), in: []*ir.Array{positive(5, 2, 3), values(6, 3)}},
		{op: onnx("Pow"), in: []*ir.Array{x, ir.ArrayOf([]float32{2})}, tell: "square"},
		{op: onnx("Pow"), in: []*ir.Array{x, integers([]int64{1}, 3)}, tell: "cube"},
		{op: onnx("Pow"), in: []*ir.Array{x, integers([]int64{3}, 3, 2, 1)}, tell: "integers"},
		{op: onnx("Min"), in: []*ir.Array{separated(1, 2, 3), shifted(separated(2, 3), 0.03),
			shifted(separated(3, 2, 1), 0.06)}},
		{op: onnx("Max"), in: []*ir.Array{separated(1, 2, 3), shifted(separated(2, 3), 0.03),
			shifted(separated(3, 2, 1), 0.06)}},
		{op: onnx("Max"), in: []*ir.Array{x}},
		{op: onnx("Sum"), in: []*ir.Array{x, row, column}},
		{op: onnx("Mean"), in: []*ir.Array{x, row, column}},
		{op: onnx("Where"), in: []*ir.Array{bools(true, false, true), x, column}},
		{op: onnx("PRelu"), in: []*ir.Array{separated(7, 2, 3, 2), values(8, 3, 1)}},
		{op: onnx("Dropout"), in: []*ir.Array{x, ir.ArrayOf([]float32{0.5})}},
		{op: onnx("Dropout"), opset: 11, in: []*ir.Array{x}, attrs: []*ir.Attr{ir.FloatAttr("ratio", 0.3)}},
		{op: onnx("Clip"), in: []*ir.Array{separated(9, 4, 5), scalar(-0.5), scalar(0.6)}},
		{op: onnx("Clip"), in: []*ir.Array{separated(9, 4, 5), nil, scalar(0.6)}, tell: "above"},
		{op: onnx("Clip"), opset: 6, in: []*ir.Array{separated(9, 4, 5)},
			attrs: []*ir.Attr{ir.FloatAttr("min", -0.3), ir.FloatAttr("max", 0.52)}},
	})
}

func scalar(x float64) *ir.Array { return ir.ArrayOf([]float64{x}) }

func TestFunctions(t *testing.T) {
	var probes []probe
	for _, typ := range []string{
		"Abs", "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Softsign", "ThresholdedRelu",
		"Shrink",
		"Sigmoid", "Tanh", "Softplus", "Mish", "Swish", "Gelu", "Erf", "Exp", "Sin", "Cos", "Atan", "Sinh", "Cosh",
		"Asinh",
	} {
		// beyond ±3, where HardSwish becomes linear
		probes = append(probes, probe{op: onnx(typ), in: []*ir.Array{separated(1, 8, 10)}})
	}
	for _, typ := range []string{"Sqrt", "Log", "Reciprocal", "Asin", "Acos", "Atanh"} {
		probes = append(probes, probe{op: onnx(typ), in: []*ir.Array{positive(2, 3, 2)}})
	}
	for _, typ := range []string{"Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Swish"} {
		probes = append(probes, probe{op: onnx(typ), in: []*ir.Array{separated(3, 3, 4)},
			attrs: []*ir.Attr{ir.FloatAttr("alpha", 0.3)}, tell: "Alpha"})
	}
	checkAll(t, append(probes, []probe{
		{op: onnx("Tan"), in: []*ir.Array{separated(1, 4, 7)}},
		{op: onnx("Acosh"), in: []*ir.Array{shifted(positive(3, 4), 1)}},
		{op: onnx("LeakyRelu"), in: []*ir.Array{separated(3, 3, 4)}, attrs: []*ir.Attr{ir.FloatAttr("alpha", -0.5)},
			tell: "Negative"},
		{op: onnx("HardSigmoid"), in: []*ir.Array{separated(3, 3, 9)},
			attrs: []*ir.Attr{ir.FloatAttr("alpha", 0.51), ir.FloatAttr("beta", 0.42)}, tell: "Alpha"},
		{op: onnx("Shrink"), in: []*ir.Array{separated(3, 3, 9)},
			attrs: []*ir.Attr{ir.FloatAttr("lambd", 0.3), ir.FloatAttr("bias", 0.2)}, tell: "Lambd"},
		{op: onnx("Selu"), in: []*ir.Array{separated(3, 3, 9)},
			attrs: []*ir.Attr{ir.FloatAttr("alpha", 0.3), ir.FloatAttr("gamma", 1.2)}, tell: "Alpha"},
		{op: onnx("Gelu"), in: []*ir.Array{separated(3, 3, 9)},
			attrs: []*ir.Attr{ir.StringAttr("approximate", "tanh")}, tell: "Tanh"},
		{op: ir.OpID{Domain: microsoft, Type: "Gelu"}, in: []*ir.Array{separated(3, 3, 9)}},
		{op: ir.OpID{Domain: microsoft, Type: "QuickGelu"}, in: []*ir.Array{separated(3, 3, 9)}},
		{op: ir.OpID{Domain: microsoft, Type: "FastGelu"}, in: []*ir.Array{separated(3, 3, 9)}},
		{op: ir.OpID{Domain: microsoft, Type: "FastGelu"}, in: []*ir.Array{separated(3, 3, 9), values(4, 9)}},
		{op: ir.OpID{Domain: microsoft, Type: "BiasGelu"}, in: []*ir.Array{separated(3, 3, 9), values(4, 9)}},
	}...))
}
