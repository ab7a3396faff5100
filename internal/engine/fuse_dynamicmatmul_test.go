package engine_test

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Dynamic int8 products have their bias and activation as an epilogue, and quantize an input that several of them read
// once. Results are bit-identical to those of the unfused nodes.
func TestDynamicProductsAreFused(t *testing.T) {
	weight := make([]byte, 24*40)
	for i := range weight {
		weight[i] = byte(i * i >> 3)
	}
	bias := make([]float32, 40)
	for i := range bias {
		bias[i] = float32(i%5) - 2
	}
	quantize := func(b *builder, x *ir.Value) []*ir.Value {
		return b.InsertN(nil, "DynamicQuantizeLinear", 3, []*ir.Value{x})
	}
	product := func(b *builder, q []*ir.Value) *ir.Value {
		w := b.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Int8, Shape: []int64{24, 40}}, Source: ir.Mem(weight)})
		y := b.cast(b.op("MatMulInteger", q[0], w, q[2]), ir.Float)
		return b.op("Add", b.op("Mul", y, b.op("Mul", q[1], b.floats(nil, 0.013))), b.floats([]int64{40}, bias...))
	}
	for name, c := range map[string]struct {
		build func(b *builder, x *ir.Value) *ir.Value
		want  []string
	}{
		"product": {want: []string{"mcompress.QuantizedMatMul"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return product(b, quantize(b, x))
		}},
		"activation": {want: []string{"mcompress.QuantizedMatMul"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("Tanh", product(b, quantize(b, x)))
		}},
		"several products": {
			want: []string{"DynamicQuantizeLinear", "mcompress.MatMulIntegerToFloat",
				"mcompress.MatMulIntegerToFloat", "Sub"},
			build: func(b *builder, x *ir.Value) *ir.Value {
				q := quantize(b, x)
				return b.op("Sub", product(b, q), b.op("Sigmoid", product(b, q)))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if steps := fusedStepsWithin(t, tolerance{}, c.build); !slices.Equal(steps, c.want) {
				t.Errorf("steps: %v, want %v", steps, c.want)
			}
		})
	}
}
