package engine_test

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// x·Sigmoid(x) is one operator, and an epilogue of a product.
func TestSwishIsFused(t *testing.T) {
	product := func(b *builder, x *ir.Value) *ir.Value {
		return b.op("MatMul", x, b.floats([]int64{24, 1}, make([]float32, 24)...))
	}
	for name, c := range map[string]struct {
		build func(b *builder, x *ir.Value) *ir.Value
		want  []string
	}{
		"input": {want: []string{"Swish"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("Mul", x, b.op("Sigmoid", x))
		}},
		"product": {want: []string{"mcompress.MatMul"}, build: func(b *builder, x *ir.Value) *ir.Value {
			y := product(b, x)
			return b.op("Mul", b.op("Sigmoid", y), y)
		}},
		"another factor": {want: []string{"Relu", "Sigmoid", "Mul"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("Mul", b.op("Sigmoid", x), b.op("Relu", x))
		}},
		"square": {want: []string{"Sigmoid", "Mul"}, build: func(b *builder, x *ir.Value) *ir.Value {
			y := b.op("Sigmoid", x)
			return b.op("Mul", y, y)
		}},
		"read twice": {want: []string{"Sigmoid", "Relu", "Mul"}, build: func(b *builder, x *ir.Value) *ir.Value {
			y := b.op("Sigmoid", x)
			b.output(b.op("Relu", y))
			return b.op("Mul", x, y)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if steps := fusedSteps(t, c.build); !slices.Equal(slices.Sorted(slices.Values(steps)),
				slices.Sorted(slices.Values(c.want))) {
				t.Errorf("steps: %v, want %v", steps, c.want)
			}
		})
	}
}
