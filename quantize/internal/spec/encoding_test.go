package spec

import (
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
)

// Encodings of equal weights are the same if they have equal fields: those of each row differ from all others.
func TestSameEncodings(t *testing.T) {
	shape, other := []int64{32, 64}, []int64{64, 32}
	perChannel := func(shape []int64, axis int, s QuantSpec, transpose bool, scales ...int64) Encoding {
		return &PerChannel{Weight: quanttest.TensorOf(ir.Float, shape, nil), Shape: shape, Layout: PerAxisLayout(shape, axis),
			Spec: s, Transpose: transpose, ScaleShape: scales}
	}
	float8 := func(name string, axis int, scales ...int64) Encoding {
		return &Float8Encoding{SmallFloat: Float8Types[name], Weight: quanttest.TensorOf(ir.Float, shape, nil),
			Layout: PerAxisLayout(shape, axis), ScaleShape: scales}
	}
	float4 := func(shape []int64, kept int, block int64) Encoding {
		return NewFloat4(Float4Type, &ir.Value{Const: quanttest.TensorOf(ir.Float, shape, nil)}, []int{kept}, block, true)
	}
	all := func() []Encoding {
		return []Encoding{
			perChannel(shape, 0, QuantSpec{}, false, 32),
			perChannel(shape, 1, QuantSpec{}, false, 64),
			perChannel(shape, 0, QuantSpec{Unsigned: true}, false, 32),
			perChannel(shape, 0, QuantSpec{}, true, 32),
			perChannel(shape, 0, QuantSpec{}, false, 32, 1),
			perChannel([]int64{32, 8, 8}, 0, QuantSpec{}, false, 32),
			float8("e5m2", 0, 32),
			float8("e4m3fn", 0, 32),
			float8("e5m2", 1, 64),
			float8("e5m2", 0, 32, 1),
			float4(shape, 0, 32),
			float4(shape, 0, 16),
			float4(shape, 1, 32),
			float4(other, 0, 32),
			float4([]int64{32, 64, 1}, 0, 32),
		}
	}
	again := all()
	for i, a := range all() {
		for j, b := range again {
			if a.Same(b) != (i == j) {
				t.Errorf("encodings %d and %d: same is %t", i, j, a.Same(b))
			}
		}
	}
}
