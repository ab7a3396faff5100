package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// scalar is an array of rank 0.
func scalar[T float32 | uint8 | int8](x T) *ir.Array { return ir.ArrayOf([]T{x}) }

// Operators that exporters and ONNX Runtime's own optimizer write, and that onnx has no tests of.
func TestContributedOperatorsAgreeWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(9, 1))
	x := func(shape ...int64) *ir.Array { return drawn(r, ir.Float, false, shape...) }
	q := func(shape ...int64) *ir.Array { return few(r, ir.Uint8, 0, 255, shape...) }
	arrays := func(list ...any) map[string]*ir.Array { // name, array, …
		in := map[string]*ir.Array{}
		for i := 0; i < len(list); i += 2 {
			in[list[i].(string)] = list[i+1].(*ir.Array)
		}
		return in
	}
	scales := arrays("s", scalar[float32](0.02), "z", scalar[uint8](120), "t", scalar[float32](0.03), "u",
		scalar[uint8](130), "v", scalar[float32](0.05), "w", scalar[uint8](100))
	quantized := func(more map[string]*ir.Array) map[string]*ir.Array {
		for name, a := range scales {
			more[name] = a
		}
		return more
	}
	for _, c := range []contribCase{
		{op: "Gelu", names: []string{"x"}, in: arrays("x", x(3, 40))},
		{op: "FastGelu", names: []string{"x", "b"}, in: arrays("x", x(3, 40), "b", x(40))},
		{op: "QuickGelu", attrs: "alpha = 1.5", names: []string{"x"}, in: arrays("x", x(3, 40))},
		{op: "BiasGelu", names: []string{"x", "b"}, in: arrays("x", x(3, 40), "b", x(40))},
		{op: "TransposeMatMul", attrs: "transA = 1, alpha = 0.5", names: []string{"a", "b"},
			in: arrays("a", x(7, 5), "b", x(7, 4))},
		{op: "Affine", opset: 9, attrs: "alpha = 2.0, beta = 1.0", names: []string{"x"}, in: arrays("x", x(3, 40))},
		{op: "ImageScaler", opset: 9, attrs: "scale = 2.0, bias = [1.0, 2.0, 3.0]", names: []string{"x"},
			in: arrays("x", x(1, 3, 4, 4))},
		{op: "Crop", opset: 9, attrs: "border = [1, 2, 1, 0]", names: []string{"x"}, in: arrays("x", x(1, 3, 8, 8))},
		{op: "FusedMatMul", attrs: "transB = 1, alpha = 2.0", names: []string{"a", "b"},
			in: arrays("a", x(2, 5, 7), "b", x(2, 4, 7))},
		{op: "FusedGemm", attrs: `activation = "Relu", transB = 1`, names: []string{"a", "b", "c"},
			in: arrays("a", x(5, 7), "b", x(4, 7), "c", x(4))},
		{op: "FusedConv", attrs: `activation = "Relu", pads = [1, 1, 1, 1]`, names: []string{"x", "f", "b"},
			in: arrays("x", x(1, 3, 8, 8), "f", x(4, 3, 3, 3), "b", x(4))},
		{op: "SkipLayerNormalization", names: []string{"x", "y0", "g", "b"},
			in: arrays("x", x(2, 3, 16), "y0", x(2, 3, 16), "g", x(16), "b", x(16))},
		{op: "SkipSimplifiedLayerNormalization", names: []string{"x", "y0", "g"},
			in: arrays("x", x(2, 3, 16), "y0", x(2, 3, 16), "g", x(16))},
		{op: "DynamicQuantizeMatMul", names: []string{"a", "b", "s", "z"},
			in: arrays("a", x(5, 8), "b", q(8, 4), "s", scalar[float32](0.02), "z", scalar[uint8](120))},
		{op: "MatMulIntegerToFloat", names: []string{"a", "b", "scales", "t", "z", "u"},
			in: arrays("a", q(5, 8), "b", q(8, 4), "scales", scalar[float32](0.02), "t", scalar[float32](0.03), "z",
				scalar[uint8](120), "u", scalar[uint8](130))},
		{op: "QGemm", attrs: "transB = 1", names: []string{"a", "s", "z", "b", "t", "u", "", "v", "w"},
			in: quantized(arrays("a", q(5, 8), "b", q(4, 8)))},
		{op: "QLinearAdd", names: []string{"a", "s", "z", "b", "t", "u", "v", "w"},
			in: quantized(arrays("a", q(5, 8), "b", q(8)))},
		{op: "QLinearMul", names: []string{"a", "s", "z", "b", "t", "u", "v", "w"},
			in: quantized(arrays("a", q(5, 8), "b", q(8)))},
		{op: "QLinearSigmoid", names: []string{"a", "s", "z", "v", "w"}, in: quantized(arrays("a", q(5, 8)))},
		{op: "QLinearLeakyRelu", attrs: "alpha = 0.1", names: []string{"a", "s", "z", "v", "w"},
			in: quantized(arrays("a", q(5, 8)))},
		{op: "QLinearGlobalAveragePool", names: []string{"a", "s", "z", "v", "w"},
			in: quantized(arrays("a", q(1, 3, 5, 5)))},
		{op: "QLinearAveragePool", attrs: "kernel_shape = [2, 2]", names: []string{"a", "s", "z", "v", "w"},
			in: quantized(arrays("a", q(1, 3, 5, 5)))},
		{op: "QLinearConcat", attrs: "axis = 0", out: ir.Uint8,
			names: []string{"v", "w", "a", "s", "z", "b", "t", "u"}, in: quantized(arrays("a", q(2, 8), "b", q(3, 8)))},
	} {
		t.Run(c.op, func(t *testing.T) {
			used := map[string]*ir.Array{}
			for _, name := range c.names {
				if name != "" {
					used[name] = c.in[name]
				}
			}
			c.in = used
			c.agrees(t, lib, 1e-5)
		})
	}
}
