package quantize

import (
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// Every method and form writes models that are valid and run at the opset of the file: it inserts no operator that the opset lacks.
func TestFormsAtEveryOpset(t *testing.T) {
	type setting struct {
		opset int64
		variant
	}
	var all []setting
	for version := int64(7); version <= 26; version++ {
		for _, v := range []variant{
			dyn, weights, {WeightInt8{}.Method(), []string{"block=32"}}, {WeightInt4{}.Method(), nil}, {WeightInt4{}.Method(), []string{"symmetric", "block=16"}},
			{WeightInt2{}.Method(), nil}, {WeightInt2{}.Method(), []string{"symmetric"}}, {Palette{}.Method(), nil}, {Float16{}.Method(), nil}, computing,
			{Float8{}.Method(), nil}, // float4 is not for ONNX Runtime
		} {
			all = append(all, setting{version, v})
		}
	}
	for i, c := range all {
		if !conform.Exhaustive() && i%7 != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%d %s", c.opset, c.variant), func(t *testing.T) {
			s := newBuilder(t, c.opset)
			ids := s.AddConst("ids", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{4}}, Source: ir.Ints(0, 3, 99, 7)})
			row := s.node("Gather", []*ir.Value{s.weight("table", 100, 50), ids})
			h := s.node("MatMul", []*ir.Value{s.node("Add", []*ir.Value{s.input("x", 4, 50), row}), s.weight("w", 50, 96)})
			s.output("y", s.node("Gemm", []*ir.Value{s.node("Relu", []*ir.Value{h}), s.weight("v", 96, 32), s.weight("bias", 32)}), 4, 32)
			s.apply(c.variant, -10)
		})
	}
}
