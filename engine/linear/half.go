package linear

import (
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

func half(dt ir.DType) bool { return dt == ir.Float16 || dt == ir.BFloat16 }

func floatBytes(a *ir.Array) int64 { return padded(4 * a.Elems()) }

func padded(n int64) int64 { return (n + 63) / 64 * 64 }

// inFloats computes a product of 16-bit floats in float32: operands and result stand in the
// call's scratch, behind what f needs itself.
func inFloats(c *op.Call, f func(a, b, out []float32, work []byte) error) error {
	rest := c.Work
	cut := func(elems int64) []float32 {
		n := int64(len(rest)) - padded(4*elems)
		x := kernel.Words[float32](rest[n:])[:elems]
		rest = rest[:n]
		return x
	}
	out := cut(c.Out[0].Elems())
	b := cut(c.In[1].Elems())
	a := cut(c.In[0].Elems())
	widen(a, c.In[0])
	widen(b, c.In[1])
	if err := f(a, b, out, rest); err != nil {
		return err
	}
	narrow(c.Out[0], out)
	return nil
}

func widen(dst []float32, a *ir.Array) {
	if a.DType == ir.Float16 {
		kernel.F32FromF16(dst, ir.View[uint16](a))
		return
	}
	kernel.F32FromBF16(dst, ir.View[uint16](a))
}

func narrow(a *ir.Array, x []float32) {
	if a.DType == ir.Float16 {
		kernel.F16FromF32(ir.View[uint16](a), x)
		return
	}
	kernel.BF16FromF32(ir.View[uint16](a), x)
}
