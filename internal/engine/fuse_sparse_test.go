package engine_test

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Operators are fused with products of a weight in a sparse form, as with those of a dense one.
func TestSparseFormsAreFused(t *testing.T) {
	const channels = 2000
	// sparse has a nonzero element in each row of ten.
	sparse := func(b *builder, shape ...int64) *ir.Value {
		n := (ir.Spec{Shape: shape}).Elems()
		at, values := make([]int64, n/10), make([]float32, n/10)
		for i := range at {
			at[i], values[i] = int64(10*i+i%10), float32(i%7)-3
		}
		x := b.op("ScatterElements", b.op("ConstantOfShape", b.ints(n)), b.ints(at...),
			b.floats([]int64{n / 10}, values...))
		return b.op("Reshape", x, b.ints(shape...))
	}
	rows := func(from float32) (x []float32) {
		for i := range channels {
			x = append(x, from+float32(i%5))
		}
		return x
	}
	for name, c := range map[string]struct {
		build func(b *builder, x *ir.Value) *ir.Value
		want  []string
	}{
		"product": {want: []string{"mcompress.MatMul"}, build: func(b *builder, x *ir.Value) *ir.Value {
			return b.op("Relu", b.op("Add", b.op("MatMul", x, sparse(b, 24, channels)),
				b.floats([]int64{channels}, rows(1)...)))
		}},
		"convolution": {want: []string{"Unsqueeze", "mcompress.FusedConv"},
			build: func(b *builder, x *ir.Value) *ir.Value {
				y := []*ir.Value{b.op("Conv", b.op("Unsqueeze", x, b.ints(1)), sparse(b, channels, 1, 3, 3))}
				for _, from := range []float32{-2, 1, 0, 3} { // scale, shift, mean and variance
					y = append(y, b.floats([]int64{channels}, rows(from)...))
				}
				return b.op("Relu", b.op("BatchNormalization", y...))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			if steps := fusedSteps(t, c.build); !slices.Equal(steps, c.want) {
				t.Errorf("steps: %v, want %v", steps, c.want)
			}
		})
	}
}
