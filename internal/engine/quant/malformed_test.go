package quant

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// samples are valid nodes.
func samples() []optest.Case {
	sample := func(name string, a attrs, in ...*ir.Array) optest.Case {
		return optest.Case{Type: name, Version: 25, In: in, Attrs: a.List(), Workers: 2}
	}
	u8, i8 := quantizedValues(9, ir.Uint8, 1), quantizedValues(9, ir.Int8, 1)
	a, b := quantizedValues(1, ir.Uint8, 5, 9), quantizedValues(2, ir.Int8, 9, 6)
	x := quantizedValues(1, ir.Uint8, 1, 4, 5, 6)
	s := one(0.5)
	list := []optest.Case{
		sample("QuantizeLinear", attrs{"axis": 1}, random(1, 3, 4, 5), scale(2, 4), quantizedValues(3, ir.Int8, 4)),
		sample("QuantizeLinear", attrs{"axis": 1, "block_size": 2}, random(1, 3, 4, 5), scale(2, 3, 2, 5), nil),
		sample("DequantizeLinear", attrs{"axis": 1}, quantizedValues(1, ir.Int4, 3, 4, 5), scale(2, 4),
			quantizedValues(3, ir.Int4, 4)),
		sample("DequantizeLinear", nil, quantizedValues(1, ir.Float8E5M2, 3, 4), s, nil),
		sample("DynamicQuantizeLinear", nil, random(1, 5)),
		sample("MatMulInteger", nil, a, b, u8, i8),
		sample("MatMulInteger", attrs{"transA": 1, "transB": 1}, quantizedValues(1, ir.Uint8, 4),
			quantizedValues(2, ir.Uint8, 8, 2, 1, 4)),
		sample("QLinearMatMul", nil, a, s, u8, b, s, i8, s, u8),
		sample("MatMulIntegerToFloat", nil, a, b, s, s, u8, i8, random(1, 6)),
		sample("DynamicQuantizeMatMul", nil, random(1, 5, 9), b, s, i8, random(1, 6)),
		sample("QGemm", attrs{"transA": 0}, a, s, u8, b, s, i8, ir.NewArray(ir.Int32, 6), s, u8),
		sample("MatMulNBits", attrs{"K": 40, "N": 6, "block_size": 32}, random(1, 3, 40),
			quantizedValues(2, ir.Uint8, 6, 2, 16), scale(3, 6, 2), nil, nil, random(1, 6)),
		sample("GatherBlockQuantized", attrs{"bits": 4, "block_size": 16}, quantizedValues(1, ir.Uint8, 5, 16),
			ir.ArrayOf([]int64{0, 4, -1}, 3), scale(2, 5, 2), quantizedValues(3, ir.Uint8, 5, 1)),
		sample("GatherBlockQuantized", attrs{"block_size": 16, "gather_axis": 1, "quantize_axis": 0},
			quantizedValues(1, ir.Int4, 20, 5), ir.ArrayOf([]int64{0, 4, -1}, 3), scale(2, 2, 5), nil),
		sample("MoE", attrs{"k": 2}, random(1, 3, 8), random(2, 3, 4), random(3, 4, 6, 8), random(4, 4, 6),
			random(5, 4, 8, 6), nil, random(6, 4, 6, 8), nil),
		sample("QMoE", attrs{"k": 1, "block_size": 16}, random(1, 3, 32), random(2, 3, 4),
			quantizedValues(3, ir.Uint8, 4, 32, 16), scale(4, 4, 32, 2), nil,
			quantizedValues(5, ir.Uint8, 4, 32, 16), scale(6, 4, 32, 2), random(7, 4, 32), nil, nil, nil,
			quantizedValues(8, ir.Uint8, 4, 32, 1)),
		sample("QLinearAdd", nil, a, s, u8, a, s, u8, s, u8),
		sample("QLinearSigmoid", nil, a, s, u8, s, u8),
		sample("QLinearConcat", attrs{"axis": 1}, s, u8, a, s, u8, a, s, u8),
		sample("QLinearGlobalAveragePool", nil, x, s, u8, s, u8),
		sample("QLinearAveragePool", attrs{"kernel_shape": []int{2, 2}}, x, s, u8, s, u8),
	}
	for _, l := range layers() {
		x, w := quantizedValues(1, ir.Uint8, l.x...), quantizedValues(2, ir.Int8, l.w...)
		list = append(list, sample("ConvInteger", l.a, x, w, u8, i8),
			sample("QLinearConv", l.a, x, s, u8, w, s, i8, s, u8, ir.NewArray(ir.Int32, l.w[0])))
	}
	return list
}

// Nodes with random defects return an error, or a result.
func TestMalformedNodesDoNotPanic(t *testing.T) {
	for i, s := range samples() {
		for seed := range uint64(400) {
			broken := s.Malformed(rand.New(rand.NewPCG(seed, uint64(i))), defects)
			if seed%2 == 0 {
				broken.Consts = allButFirst(broken.In)
			}
			if text := optest.Panic(rowOf(s.Type), broken); text != "" {
				t.Fatalf("%v: %s", broken, text)
			}
		}
	}
}

var defects = optest.Defects{
	Ints: []string{"axis", "block_size", "output_dtype", "precision", "K", "N", "bits", "group", "transA", "transB",
		"channels_last", "k", "swiglu_fusion", "expert_weight_bits", "gather_axis", "quantize_axis"},
	Lists: []string{"pads", "strides", "kernel_shape"},
}
