package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func dequantizeShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "x")
	if err != nil {
		return nil, err
	}
	_, integer := ranges[x.DType]
	if x.Kind != ir.Dense || !integer && x.DType != ir.Int32 && (!narrow.IsFloat(x.DType) || x.DType == ir.Float8E8M0) {
		return nil, fmt.Errorf("input x is %s, want a quantized type", x)
	}
	if err := checkScale(n, in, "x_scale", "x_zero_point"); err != nil {
		return nil, err
	}
	if zero := op.Opt(in, 2); zero != nil && zero.DType != x.DType {
		return nil, fmt.Errorf("input x_zero_point is %s, want the type of x, %s", zero, x.DType)
	}
	dt := in[1].DType
	if wanted := n.Int("output_dtype", 0); wanted != 0 {
		dt = ir.DType(wanted)
	}
	if dt != ir.Float && dt != ir.Float16 && dt != ir.BFloat16 {
		return nil, fmt.Errorf("output_dtype or x_scale is %s, want float or a 16-bit float", dt)
	}
	return []ir.Spec{{DType: dt, Shape: x.Shape}}, nil
}

// dequantizeWork is the memory of a byte, or a float, per packed value.
func dequantizeWork(_ *op.Node, in []*ir.Array, _ int) int64 {
	switch dt := in[0].DType; {
	case dt.Bits() >= 8:
		return 0
	case narrow.IsFloat(dt):
		return 4 * in[0].Elems()
	}
	return in[0].Elems()
}

// packDequantize packs values of at most 8 bits, without data while memory is only planned.
func packDequantize(n *op.Node, in []*ir.Array, forms []op.Packed) op.Packed {
	// Of an input that is packed itself the values are not at hand.
	if slices.ContainsFunc(forms, func(p op.Packed) bool { return p != nil }) {
		return nil
	}
	specs, err := dequantizeShape(n, in)
	// Values of 6 bits cross the borders of bytes, so that no single element of them can be read.
	bits := in[0].DType.Bits()
	if err != nil || specs[0].DType != ir.Float || bits > 8 || bits == 6 {
		return nil
	}
	g, err := packedweight.GranularityOf(n, in[0], in[1])
	if err != nil {
		return nil
	}
	zero := op.Opt(in, 2)
	if narrow.IsFloat(in[0].DType) {
		zero = nil
	}
	var scale []float32
	if op.IsKnown(in[0]) {
		if scale, err = floats(in[1]); err != nil || zero != nil && !op.IsKnown(zero) {
			return nil
		}
	}
	return packedweight.NewQuantized(g, in[0], zero, scale, int(in[1].Elems()))
}

// A dequantizer is one DequantizeLinear.
type dequantizer struct {
	*packedweight.Granularity
	x, y   *ir.Array
	scale  []float32
	zero   []int32   // nil for zeros
	bytes  []byte    // quantized values of integer types of at most 8 bits
	values []float32 // quantized values of packed float types
}

func dequantize(c *op.Call) error {
	d := &dequantizer{x: c.In[0], y: c.Out[0]}
	var err error
	if d.Granularity, err = packedweight.GranularityOf(c.Node, c.In[0], c.In[1]); err != nil {
		return err
	}
	if d.scale, err = floats(c.In[1]); err != nil {
		return err
	}
	// Zero points of float types are zero.
	if zero := c.Opt(2); zero != nil && !narrow.IsFloat(zero.DType) {
		if d.zero, err = integers(zero); err != nil {
			return err
		}
	}
	// All values at once: runs of a scale may begin inside of a byte.
	d.unpack(c.Work)
	d.Each(c.Pool, d.run)
	return nil
}

// unpack unpacks types below 8 bits.
func (d *dequantizer) unpack(work []byte) {
	switch dt := d.x.DType; {
	case isByte(dt):
		d.bytes = d.x.Data
	case narrow.IsInt(dt):
		d.bytes = work[:d.Elems()]
		narrow.DecodeInts(d.bytes, d.x.Data, dt)
	case dt.Bits() < 8:
		d.values = kernel.Words[float32](work)[:d.Elems()]
		narrow.DecodeFloats(d.values, d.x.Data, dt)
	}
}

// run dequantizes one run. float16 and bfloat16 are rounded once, from float32.
func (d *dequantizer) run(r packedweight.Run) {
	if d.y.DType == ir.Float {
		d.floats(ir.View[float32](d.y)[r.At:][:r.N], r)
		return
	}
	var buf [chunk]float32
	d.floats(buf[:r.N], r)
	to := ir.View[uint16](d.y)[r.At:][:r.N]
	if d.y.DType == ir.Float16 {
		kernel.F16FromF32(to, buf[:r.N])
	} else {
		kernel.BF16FromF32(to, buf[:r.N])
	}
}

func (d *dequantizer) floats(dst []float32, r packedweight.Run) {
	switch {
	case d.bytes != nil && r.Step == 0:
		kernel.Dequantize(dst, d.bytes[r.At:][:r.N], d.signed(), d.scale[r.Scale], d.zeroAt(r.Scale))
		return
	case d.bytes != nil:
		var zero []int32
		if d.zero != nil {
			zero = d.zero[r.Scale:][:r.N]
		}
		kernel.DequantizeCols(dst, d.bytes[r.At:][:r.N], d.signed(), d.scale[r.Scale:][:r.N], zero)
		return
	case d.values != nil:
		copy(dst, d.values[r.At:][:r.N])
	case d.x.DType == ir.Int16:
		differences(dst, ir.View[int16](d.x)[r.At:][:r.N], d, r)
	case d.x.DType == ir.Uint16:
		differences(dst, ir.View[uint16](d.x)[r.At:][:r.N], d, r)
	case d.x.DType == ir.Int32:
		differences(dst, ir.View[int32](d.x)[r.At:][:r.N], d, r)
	default:
		narrow.DecodeFloats(dst, d.x.Data[r.At:], d.x.DType)
	}
	for i := range dst {
		dst[i] *= d.scale[r.Scale+i*r.Step]
	}
}

// signed is the sign type of unpacked bytes.
func (d *dequantizer) signed() bool { return ranges[d.x.DType].lo < 0 }

func (d *dequantizer) zeroAt(i int) int32 {
	if d.zero == nil {
		return 0
	}
	return d.zero[i]
}

// differences are the quantized values minus their zero points.
func differences[T int16 | uint16 | int32](dst []float32, x []T, d *dequantizer, r packedweight.Run) {
	for i, v := range x {
		dst[i] = float32(int64(v) - int64(d.zeroAt(r.Scale+i*r.Step)))
	}
}
