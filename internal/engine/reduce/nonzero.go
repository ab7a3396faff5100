package reduce

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func nonZeroOps() []op.Op {
	return []op.Op{{Type: "NonZero", Since: 9, Run: runNonZero}}
}

// unpacked are the types that are not packed.
const unpacked = block.Numbers | block.Bool | block.Text | block.Complex

// runNonZero writes the indices of the elements that are not zero, a row per axis.
func runNonZero(c *op.Call) error {
	x, err := unpacked.Tensor(c.In, 0, "X")
	if err != nil {
		return err
	}
	at := positions(x)
	count := len(at)
	y, err := c.Make(0, ir.Int64, int64(len(x.Shape)), int64(count))
	if err != nil {
		return err
	}
	dst := ir.View[int64](y)
	for axis, step := range op.Strides(x.Shape) {
		d := x.Shape[axis]
		row := dst[axis*count:][:count]
		for i, p := range at {
			row[i] = p / step % d
		}
	}
	return nil
}

// positions are those of the elements that are not zero: -0 is zero and NaN is not.
func positions(x *ir.Array) []int64 {
	switch x.DType {
	case ir.String:
		return where(x.Text, func(s string) bool { return s != "" })
	case ir.Complex64:
		return where(ir.View[complex64](x), func(v complex64) bool { return v != 0 })
	case ir.Complex128:
		return where(ir.View[complex128](x), func(v complex128) bool { return v != 0 })
	case ir.Float:
		return whereBits[uint32](x, math.MaxInt32)
	case ir.Double:
		return whereBits[uint64](x, math.MaxInt64)
	case ir.Float16, ir.BFloat16:
		return whereBits[uint16](x, math.MaxInt16)
	case ir.Int32, ir.Uint32:
		return whereBits[uint32](x, math.MaxUint32)
	case ir.Int64, ir.Uint64:
		return whereBits[uint64](x, math.MaxUint64)
	case ir.Int16, ir.Uint16:
		return whereBits[uint16](x, math.MaxUint16)
	}
	return whereBits[uint8](x, math.MaxUint8)
}

func where[T any](x []T, is func(T) bool) []int64 {
	var at []int64
	for i, v := range x {
		if is(v) {
			at = append(at, int64(i))
		}
	}
	return at
}

// whereBits converts the bits of mask to positions.
func whereBits[T uint8 | uint16 | uint32 | uint64](x *ir.Array, mask T) []int64 {
	v := ir.View[T](x)
	count := 0
	for _, bits := range v {
		if bits&mask != 0 {
			count++
		}
	}
	at := make([]int64, 0, count)
	for i, bits := range v {
		if bits&mask != 0 {
			at = append(at, int64(i))
		}
	}
	return at
}
