package spec

import (
	"cmp"
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// PerChannel is a weight with one scale for each channel, or for the whole tensor.
type PerChannel struct {
	Weight     *ir.Tensor  // the float weight
	Shape      []int64     // as its consumers see it, before any transposition
	Layout     ScaleLayout // of the scales in Weight
	Spec       QuantSpec
	Transpose  bool        // a matrix whose transpose is stored
	Axis       int         // of Shape with a scale for each index; -1 for one scale
	ScaleShape []int64     // shape of the scales
	Buffers    *BufferPool // shared by the encodings of a run; may be nil
}

// Recipe computes quantized values and scales. It reads the weight once if each segment has its own scale, else twice.
func (c *PerChannel) Recipe() *ir.Recipe {
	shape := c.Shape
	if c.Transpose {
		shape = []int64{shape[1], shape[0]}
	}
	r := &ir.Recipe{
		Name: "quantize",
		In:   []*ir.Tensor{c.Weight},
		Out: []ir.Spec{
			{Name: c.Weight.Name, DType: c.Spec.DType(), Shape: shape},
			{Name: c.Weight.Name, DType: ir.Float, Shape: c.ScaleShape},
		},
		Work: c.work(),
		Run:  c.run,
	}
	if !c.Spec.Symmetric {
		r.Out = append(r.Out, ir.Spec{Name: c.Weight.Name, DType: c.Spec.DType(), Shape: c.ScaleShape})
	}
	return r
}

func (c *PerChannel) work() int64 {
	held := c.Layout.bufferElems()
	if c.Layout.rows > 1 || c.Layout.inner > c.Layout.limit.Elems() {
		held = max(held, min(c.Layout.Elems(), c.Layout.limit.maxBuffered()))
	}
	// A panel of floats and two of quantized values, which are half a panel of floats.
	if c.Transpose {
		held = max(held, c.panelCols()*c.Shape[0]+c.panelCols()*c.Shape[0]/2)
	}
	return held*(4+1) + held*(c.Weight.DType.Bits()/8)*b2i(c.Weight.DType != ir.Float) + c.Layout.NumScales()*16
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *PerChannel) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	var a *QParams
	var err error
	switch {
	case c.Transpose:
		a, err = c.quantizeTransposed(ctx, in[0], out[OutQuantized])
	// All elements of a scale are one segment: it is quantized while it is in the cache, and the weight is read once.
	case c.Layout.rows == 1 && c.Layout.inner <= c.Layout.limit.Elems():
		a, err = c.onePass(ctx, in[0], out[OutQuantized])
	default:
		a, err = c.twoPass(ctx, in[0], out[OutQuantized])
	}
	if err != nil {
		return err
	}
	if _, err := out[OutScales].Write(kernel.Bytes(a.Scale)); err != nil {
		return err
	}
	if a.ZeroPoint == nil {
		return nil
	}
	_, err = out[OutZeroPoints].Write(zeroPointBytes(a.ZeroPoint))
	return err
}

// zeroPointBytes are zero points as quantized values: the low byte of each.
func zeroPointBytes(zero []int32) []byte {
	b := make([]byte, len(zero))
	for i, z := range zero {
		b[i] = byte(z)
	}
	return b
}

// twoPass reads the weight for its scales and then for its quantized values.
func (c *PerChannel) twoPass(ctx context.Context, in io.ReaderAt, out io.Writer) (*QParams, error) {
	r := newSegmentBuffer(c.Buffers, in, c.Weight.DType, c.Layout, 2)
	defer r.close()
	a, err := r.observe(ctx, c.Weight, c.Layout, c.Spec)
	if err != nil {
		return nil, err
	}
	return a, c.quantizeWith(ctx, r, out, a)
}

// onePass observes and quantizes each segment while it is in the cache.
func (c *PerChannel) onePass(ctx context.Context, in io.ReaderAt, out io.Writer) (*QParams, error) {
	m, a := newMinMaxObserver(c.Layout.NumScales(), c.Spec), newQParams(c.Layout.NumScales(), c.Spec)
	r := newSegmentBuffer(c.Buffers, in, c.Weight.DType, c.Layout, 1)
	defer r.close()
	err := c.quantizeSegments(ctx, r, out, func(q segment, x []float32, dst []byte) error {
		m.observe(c.Layout, q, x)
		scale, zero, err := m.qparams(c.Spec, q.first, c.Weight.Name)
		if err != nil {
			return err
		}
		a.set(int(q.first), scale, zero)
		kernel.Quantize(dst, x, scale, zero, c.Spec.Levels())
		return nil
	})
	// After all channels, as a dead one is compared with the largest magnitude of the weight.
	return a, cmp.Or(err, m.unfit(c.Weight.Name))
}

// quantizeWith quantizes with known scales.
func (c *PerChannel) quantizeWith(ctx context.Context, r *segmentBuffer, out io.Writer, a *QParams) error {
	fixed := a.ZeroPoint
	// The kernel takes no zero points for 0, and those of columns as a list.
	if fixed == nil && c.Spec.ZeroPoint() != 0 && c.Layout.columnwise() {
		fixed = make([]int32, c.Layout.NumScales())
		for i := range fixed {
			fixed[i] = c.Spec.ZeroPoint()
		}
	}
	return c.quantizeSegments(ctx, r, out, func(q segment, x []float32, dst []byte) error {
		if !c.Layout.columnwise() {
			kernel.Quantize(dst, x, a.Scale[q.first], a.zeroPointOf(c.Spec, q.first), c.Spec.Levels())
			return nil
		}
		var zero []int32
		if fixed != nil {
			zero = fixed[q.first:][:c.Layout.channels]
		}
		kernel.QuantizeCols(dst, x, a.Scale[q.first:][:c.Layout.channels], zero, c.Spec.Levels())
		return nil
	})
}

// quantizeSegments passes each segment and its destination to do, and writes quantized values in blocks.
func (c *PerChannel) quantizeSegments(ctx context.Context, r *segmentBuffer, out io.Writer,
	do func(q segment, x []float32, dst []byte) error) error {
	buf, free := c.Buffers.takeBytes(c.Layout.bufferElems())
	defer free()
	buf = buf[:0:c.Layout.bufferElems()]
	err := c.Layout.segments(func(q segment) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		if len(buf)+len(x) > cap(buf) {
			if err := flush(ctx, out, &buf); err != nil {
				return err
			}
		}
		buf = buf[:len(buf)+len(x)]
		return do(q, x, buf[len(buf)-len(x):])
	})
	if err != nil {
		return err
	}
	return flush(ctx, out, &buf)
}

func flush(ctx context.Context, out io.Writer, buf *[]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := out.Write(*buf)
	*buf = (*buf)[:0]
	return err
}
