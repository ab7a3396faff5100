package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
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

// A dequantizer is one DequantizeLinear.
type dequantizer struct {
	*granularity
	x, y   *ir.Array
	scale  []float32
	zero   []int32   // nil for zeros
	bytes  []byte    // quantized values of integer types of at most 8 bits
	values []float32 // quantized values of packed float types
}

func dequantize(c *op.Call) error {
	d := &dequantizer{x: c.In[0], y: c.Out[0]}
	var err error
	if d.granularity, err = granularityOf(c.Node, c.In[0], c.In[1]); err != nil {
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
	d.unpack(c.Work)
	d.each(c.Pool, d.run)
	return nil
}

// unpack unpacks types below 8 bits.
func (d *dequantizer) unpack(work []byte) {
	switch dt := d.x.DType; {
	case isByte(dt):
		d.bytes = d.x.Data
	case narrow.IsInt(dt):
		d.bytes = work[:d.total]
		narrow.DecodeInts(d.bytes, d.x.Data, dt)
	case dt.Bits() < 8:
		d.values = kernel.Words[float32](work)[:d.total]
		narrow.DecodeFloats(d.values, d.x.Data, dt)
	}
}

// run dequantizes one run. float16 and bfloat16 are rounded once, from float32.
func (d *dequantizer) run(r run) {
	if d.y.DType == ir.Float {
		d.floats(ir.View[float32](d.y)[r.at:][:r.n], r)
		return
	}
	var buf [chunk]float32
	d.floats(buf[:r.n], r)
	to := ir.View[uint16](d.y)[r.at:][:r.n]
	if d.y.DType == ir.Float16 {
		kernel.F16FromF32(to, buf[:r.n])
	} else {
		kernel.BF16FromF32(to, buf[:r.n])
	}
}

func (d *dequantizer) floats(dst []float32, r run) {
	switch {
	case d.bytes != nil && r.step == 0:
		kernel.Dequantize(dst, d.bytes[r.at:][:r.n], d.signed(), d.scale[r.scale], d.zeroAt(r.scale))
		return
	case d.bytes != nil:
		var zero []int32
		if d.zero != nil {
			zero = d.zero[r.scale:][:r.n]
		}
		kernel.DequantizeCols(dst, d.bytes[r.at:][:r.n], d.signed(), d.scale[r.scale:][:r.n], zero)
		return
	case d.values != nil:
		copy(dst, d.values[r.at:][:r.n])
	case d.x.DType == ir.Int16:
		differences(dst, ir.View[int16](d.x)[r.at:][:r.n], d, r)
	case d.x.DType == ir.Uint16:
		differences(dst, ir.View[uint16](d.x)[r.at:][:r.n], d, r)
	case d.x.DType == ir.Int32:
		differences(dst, ir.View[int32](d.x)[r.at:][:r.n], d, r)
	default:
		narrow.DecodeFloats(dst, d.x.Data[r.at:], d.x.DType)
	}
	for i := range dst {
		dst[i] *= d.scale[r.scale+i*r.step]
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
func differences[T int16 | uint16 | int32](dst []float32, x []T, d *dequantizer, r run) {
	for i, v := range x {
		dst[i] = float32(int64(v) - int64(d.zeroAt(r.scale+i*r.step)))
	}
}
