package reduce

import (
	"math"

	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func nonZeroOps() []op.Op {
	return []op.Op{{Type: "NonZero", Since: 9, Run: runNonZero}}
}

// held are the types whose elements stand for themselves, not packed.
const held = block.Numbers | block.Bool | block.Text | block.Complex

// runNonZero writes the indices of the elements that are not zero, an axis a row.
func runNonZero(c *op.Call) error {
	x, err := held.Tensor(c.In, 0, "X")
	if err != nil {
		return err
	}
	is := notZero(x)
	count := 0
	for i := range int(x.Elems()) {
		if is(i) {
			count++
		}
	}
	dst := ir.View[int64](c.Make(0, ir.Int64, int64(len(x.Shape)), int64(count)))
	steps, at := op.Strides(x.Shape), 0
	for i := range int(x.Elems()) {
		if !is(i) {
			continue
		}
		for axis, d := range x.Shape {
			dst[axis*count+at] = int64(i) / steps[axis] % d
		}
		at++
	}
	return nil
}

// notZero tests an element by its bits: -0 is zero and NaN is not.
func notZero(x *ir.Array) func(i int) bool {
	switch x.DType {
	case ir.String:
		return func(i int) bool { return x.Text[i] != "" }
	case ir.Complex64:
		return differs(x, complex64(0))
	case ir.Complex128:
		return differs(x, complex128(0))
	case ir.Float, ir.Int32, ir.Uint32:
		return outside[uint32](x, math.MaxInt32)
	case ir.Double, ir.Int64, ir.Uint64:
		return outside[uint64](x, math.MaxInt64)
	case ir.Float16, ir.BFloat16, ir.Int16, ir.Uint16:
		return outside[uint16](x, math.MaxInt16)
	}
	return differs(x, uint8(0))
}

func differs[T ir.Element](x *ir.Array, zero T) func(i int) bool {
	v := ir.View[T](x)
	return func(i int) bool { return v[i] != zero }
}

// outside looks at all bits of integers, and at those of floats but for the sign.
func outside[T uint16 | uint32 | uint64](x *ir.Array, magnitude T) func(i int) bool {
	v := ir.View[T](x)
	if !block.Floats.Has(x.DType) {
		magnitude = ^T(0)
	}
	return func(i int) bool { return v[i]&magnitude != 0 }
}
