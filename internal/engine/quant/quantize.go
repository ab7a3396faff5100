package quant

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// quantizeOps are QuantizeLinear and DequantizeLinear. Later versions only added types, per-axis (13) and blockwise
// (21) scales, and attributes whose defaults equal the earlier semantics.
func quantizeOps() []op.Op {
	return []op.Op{
		{Type: "QuantizeLinear", Since: 10, Shape: quantizeShape, Work: quantizeWork, Run: quantize},
		{Type: "DequantizeLinear", Since: 10, Shape: dequantizeShape, Work: dequantizeWork, Run: dequantize,
			Pack: packDequantize, Packs: true},
		{Type: "DynamicQuantizeLinear", Since: 11, Shape: dynamicShape, Run: dynamic},
		{Domain: microsoft, Type: "QuantizeLinear", Since: 1, Shape: quantizeShape, Work: quantizeWork, Run: quantize},
		{Domain: microsoft, Type: "DequantizeLinear", Since: 1, Shape: dequantizeShape, Work: dequantizeWork,
			Run: dequantize, Pack: packDequantize, Packs: true},
	}
}

// chunk is the number of elements processed at once.
const chunk = packedweight.Chunk

// microsoft is the domain of ONNX Runtime's own operators.
const microsoft = "com.microsoft"

func quantizeShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "x")
	if err != nil {
		return nil, err
	}
	if x.Kind != ir.Dense || !isScale(x.DType) {
		return nil, fmt.Errorf("input x is %s, want float, a 16-bit float or int32", x)
	}
	dt, err := quantizedType(n, op.Opt(in, 2))
	if err != nil {
		return nil, err
	}
	if err := checkScale(n, in, "y_scale", "y_zero_point"); err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: dt, Shape: x.Shape}}, nil
}

// quantizedType is the type of the output of QuantizeLinear.
func quantizedType(n *op.Node, zero *ir.Array) (ir.DType, error) {
	dt := ir.Uint8
	wanted := n.Int("output_dtype", 0)
	if zero != nil {
		dt = zero.DType
	} else if wanted != 0 {
		dt = ir.DType(wanted)
	}
	if wanted != 0 && wanted != int64(dt) {
		return 0, fmt.Errorf("output_dtype is %d and y_zero_point is %s", wanted, zero)
	}
	if _, integer := ranges[dt]; !integer && (!narrow.IsFloat(dt) || dt == ir.Float8E8M0) {
		return 0, fmt.Errorf("y_zero_point or output_dtype is %s, want a quantized type", dt)
	}
	return dt, nil
}

// checkScale checks inputs 1 and 2, the scale and the zero point of input 0.
func checkScale(n *op.Node, in []*ir.Array, scaleName, zeroName string) error {
	scale, err := op.Arg(in, 1, scaleName)
	if err != nil {
		return err
	}
	if scale.Kind != ir.Dense || !isScale(scale.DType) {
		return fmt.Errorf("input %s is %s, want floats", scaleName, scale)
	}
	if zero := op.Opt(in, 2); zero != nil && (zero.Kind != ir.Dense || zero.Elems() != scale.Elems()) {
		return fmt.Errorf("input %s is %s, want the shape of %s, %s", zeroName, zero, scaleName, scale)
	}
	if _, err := packedweight.GranularityOf(n, in[0], scale); err != nil {
		return fmt.Errorf("input %s: %w", scaleName, err)
	}
	return nil
}

// quantizeWork is the memory of one byte per value that is packed afterwards.
func quantizeWork(n *op.Node, in []*ir.Array, _ int) int64 {
	dt, err := quantizedType(n, op.Opt(in, 2))
	if err != nil || dt.Bits() >= 8 {
		return 0
	}
	size := int64(1)
	if narrow.IsFloat(dt) {
		size = 4
	}
	return size * in[0].Elems()
}

// A quantizer is one QuantizeLinear.
type quantizer struct {
	*packedweight.Granularity
	x, y      *ir.Array
	scale     []float32
	zero      []int32   // nil for zeros
	shift     []float32 // the zero points of float types
	precision ir.DType  // of the quotient
	saturate  bool
}

func quantize(c *op.Call) error {
	q := &quantizer{x: c.In[0], y: c.Out[0], saturate: c.Bool("saturate", true)}
	var err error
	if q.Granularity, err = packedweight.GranularityOf(c.Node, c.In[0], c.In[1]); err != nil {
		return err
	}
	if q.scale, err = floats(c.In[1]); err != nil {
		return err
	}
	if err := q.setZero(c.Opt(2)); err != nil {
		return err
	}
	q.precision = ir.DType(c.Int("precision", 0))
	if q.precision == ir.Undefined {
		q.precision = c.In[1].DType
	}
	if q.precision != c.In[1].DType {
		// The scale is an input, which others may consume.
		q.scale = slices.Clone(q.scale)
		rounded(q.scale, q.precision)
	}
	q.fill(c)
	return nil
}

func (q *quantizer) setZero(a *ir.Array) (err error) {
	switch {
	case a == nil:
	case narrow.IsFloat(a.DType):
		q.shift, err = floats(a)
	default:
		q.zero, err = integers(a)
	}
	return err
}

// fill writes the quantized values. Packed ones are written as bytes, or floats, first.
func (q *quantizer) fill(c *op.Call) {
	dt := q.y.DType
	switch {
	case narrow.IsFloat(dt) && dt.Bits() < 8:
		all := kernel.Words[float32](c.Work)
		q.Each(c.Pool, func(r packedweight.Run) { q.quotients(all[r.At:][:r.N], r) })
		narrow.EncodeFloats(q.y.Data, all, dt, narrow.Rounding{Saturate: true})
	case narrow.IsFloat(dt):
		q.Each(c.Pool, func(r packedweight.Run) {
			var buf [chunk]float32
			q.quotients(buf[:r.N], r)
			narrow.EncodeFloats(q.y.Data[r.At:], buf[:r.N], dt, narrow.Rounding{Saturate: q.saturate})
		})
	case dt.Bits() < 8:
		q.Each(c.Pool, func(r packedweight.Run) { q.bytes(c.Work[r.At:][:r.N], r) })
		// After all bytes: a run may end inside of a byte that another one begins.
		narrow.EncodeInts(q.y.Data, c.Work[:q.Elems()], dt)
	case dt.Bits() == 8:
		q.Each(c.Pool, func(r packedweight.Run) { q.bytes(q.y.Data[r.At:][:r.N], r) })
	case dt == ir.Int16:
		q.Each(c.Pool, func(r packedweight.Run) { words(q, ir.View[int16](q.y)[r.At:][:r.N], r) })
	default:
		q.Each(c.Pool, func(r packedweight.Run) { words(q, ir.View[uint16](q.y)[r.At:][:r.N], r) })
	}
}

// bytes writes quantized values of at most 8 bits.
func (q *quantizer) bytes(dst []byte, r packedweight.Run) {
	levels := rangeOfType(q.y.DType)
	if q.x.DType == ir.Float && q.precision != ir.Float16 && q.precision != ir.BFloat16 {
		q.kernel(dst, ir.View[float32](q.x)[r.At:][:r.N], q.scale, r, levels)
		return
	}
	var buf [chunk]float32
	q.quotients(buf[:r.N], r)
	// The quotients are divided and rounded to the precision already: the kernel rounds them to integers only.
	ones := make([]float32, len(q.scale))
	for i := range ones {
		ones[i] = 1
	}
	q.kernel(dst, buf[:r.N], ones, r, levels)
}

// kernel quantizes float32 with float32 scales.
func (q *quantizer) kernel(dst []byte, x, scale []float32, r packedweight.Run, levels kernel.IntRange) {
	if r.Step == 0 {
		kernel.Quantize(dst, x, scale[r.Scale], q.zeroAt(r.Scale), levels)
		return
	}
	var zero []int32
	if q.zero != nil {
		zero = q.zero[r.Scale:][:r.N]
	}
	kernel.QuantizeCols(dst, x, scale[r.Scale:][:r.N], zero, levels)
}

func (q *quantizer) zeroAt(i int) int32 {
	if q.zero == nil {
		return 0
	}
	return q.zero[i]
}

// quotients are x/scale in the given precision, plus a float zero point.
func (q *quantizer) quotients(dst []float32, r packedweight.Run) {
	readFloats(dst, q.x, r.At)
	rounded(dst, q.precision)
	for i := range dst {
		dst[i] /= q.scale[r.Scale+i*r.Step]
	}
	rounded(dst, q.precision)
	if q.shift != nil {
		for i := range dst {
			dst[i] += q.shift[r.Scale+i*r.Step]
		}
	}
}

// words writes quantized values of 16 bits. NaN becomes the lowest one, as in the kernels.
func words[T int16 | uint16](q *quantizer, dst []T, r packedweight.Run) {
	var buf [chunk]float32
	q.quotients(buf[:r.N], r)
	limits := ranges[q.y.DType]
	lo, hi := float64(limits.lo), float64(limits.hi)
	for i := range dst {
		v := math.RoundToEven(float64(buf[i])) + float64(q.zeroAt(r.Scale+i*r.Step))
		if !(v > lo) {
			v = lo
		}
		dst[i] = T(min(v, hi))
	}
}
