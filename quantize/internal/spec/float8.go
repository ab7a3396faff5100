package spec

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Float8Types are the 8-bit floats by option. Cast supports both since opset 19.
var Float8Types = map[string]SmallFloat{
	"e4m3fn": {Dt: ir.Float8E4M3FN, Format: kernel.E4M3FN, Opset: 19},
	"e5m2":   {Dt: ir.Float8E5M2, Format: kernel.E5M2, Opset: 19},
}

// A Float8Encoding is a weight of 8-bit floats with a scale for each channel.
type Float8Encoding struct {
	SmallFloat
	Weight     *ir.Tensor
	Layout     ScaleLayout
	ScaleShape []int64 // of the scales
	AsBytes    bool    // the bits of the floats are stored as bytes, which operators on tables support
}

// NewFloat8 returns the encoding of v with scales along axes.
func NewFloat8(t SmallFloat, v *ir.Value, axes []int) SmallFloatEncoding {
	s := &Float8Encoding{SmallFloat: t, Weight: v.Const}
	s.Layout, s.ScaleShape = LayoutOfAxes(v.Const.Shape, axes)
	return s
}

// Bytes implements SmallFloatEncoding.
func (s *Float8Encoding) Bytes() int64 { return s.Weight.Elems() + 4*s.Layout.NumScales() }

// Recipe implements Encoding.
func (s *Float8Encoding) Recipe() *ir.Recipe {
	dt := s.Dt
	if s.AsBytes {
		dt = ir.Uint8
	}
	return &ir.Recipe{
		Name: "float8",
		In:   []*ir.Tensor{s.Weight},
		Out: []ir.Spec{{Name: s.Weight.Name, DType: dt, Shape: s.Weight.Shape},
			{Name: s.Weight.Name, DType: ir.Float, Shape: s.ScaleShape}},
		Work: 2*s.Layout.bufferElems()*5 + min(s.Layout.Elems(), s.Layout.limit.maxBuffered())*4 + 8*s.Layout.NumScales(),
		Run:  s.run,
	}
}

// run reads the weight for its scales and then for its quantized values.
func (s *Float8Encoding) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	r := newSegmentBuffer(nil, in[0], s.Weight.DType, s.Layout, 2)
	defer r.close()
	// First, as a column's elements are spread over the weight.
	scale, err := s.observe(ctx, r)
	if err != nil {
		return err
	}
	buf := make([]byte, s.Layout.bufferElems())
	err = s.Layout.segments(func(q segment) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		s.quantize(buf[:q.n], x, q, scale)
		if _, err := out[OutQuantized].Write(buf[:q.n]); err != nil {
			return err
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	_, err = out[OutScales].Write(kernel.Bytes(scale))
	return err
}

// observe computes the scale of each channel, which maps its maximum magnitude to the largest number of the format.
func (s *Float8Encoding) observe(ctx context.Context, r *segmentBuffer) ([]float32, error) {
	m := newMinMaxObserver(s.Layout.NumScales(), QuantSpec{Symmetric: true})
	err := s.Layout.segments(func(q segment) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		m.observe(s.Layout, q, x)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	scale := make([]float32, len(m.bits))
	for i, bits := range m.bits {
		if reason := NotFinite(bits); !reason.None() {
			return nil, &pass.Unfit{Tensor: s.Weight.Name, Reason: reason}
		}
		peak := math.Float32frombits(bits)
		scale[i] = peak / s.Format.Largest()
		dead := !IsNormal(scale[i])
		if m.add(peak, dead); dead {
			scale[i] = 1
		}
		if !representable(scale[i], s.Format.Largest()) {
			return nil, &pass.Unfit{Tensor: s.Weight.Name, Reason: noScaleOf(peak)}
		}
	}
	return scale, m.unfit(s.Weight.Name)
}

// quantize quantizes one segment.
func (s *Float8Encoding) quantize(dst []byte, x []float32, q segment, scale []float32) {
	if !s.Layout.columnwise() {
		s.Format.Encode(dst, x, scale[q.first])
		return
	}
	s.Format.EncodeCols(dst, x, scale[q.first:][:s.Layout.channels])
}

// EmitDequantize inserts Cast and Mul.
func (s *Float8Encoding) EmitDequantize(g *ir.Graph, at *ir.Node, quantized, scales *ir.Value) *ir.Value {
	x := g.Insert(at, "Cast", []*ir.Value{quantized}, ir.IntAttr("to", int64(ir.Float)))
	return g.Insert(at, "Mul", []*ir.Value{x, scales})
}

// Restore dequantizes the float weight from quantized values and scales.
func (s *Float8Encoding) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "restore", In: parts, Out: []ir.Spec{s.Weight.Spec}, Work: 2 * s.Layout.bufferElems() * 5}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		scale := make([]float32, s.Layout.NumScales())
		if err := ir.ReadFull(in[OutScales], kernel.Bytes(scale), 0); err != nil {
			return err
		}
		quantized, x := make([]byte, s.Layout.bufferElems()), make([]float32, s.Layout.bufferElems())
		w := &FloatWriter{W: out[0], Dt: s.Weight.DType}
		return s.Layout.segments(func(q segment) error {
			if err := ir.ReadFull(in[OutQuantized], quantized[:q.n], q.at); err != nil {
				return err
			}
			y := x[:q.n]
			s.dequantize(y, quantized[:q.n], q, scale)
			return w.Flush(ctx, &y)
		})
	}
	return r.Derive()[0]
}

func (s *Float8Encoding) dequantize(dst []float32, quantized []byte, q segment, scale []float32) {
	if !s.Layout.columnwise() {
		s.Format.Decode(dst, quantized, scale[q.first])
		return
	}
	s.Format.Decode(dst, quantized, 1)
	cols := scale[q.first:][:s.Layout.channels]
	for i := range dst {
		dst[i] *= cols[i%len(cols)]
	}
}

// Check quantizes the weight without output.
func (c *Float8Encoding) Check(ctx context.Context, in io.ReaderAt) error {
	return checkRecipe(ctx, c.Recipe(), in)
}

// Same reports whether e quantizes an equal weight to equal values.
func (c *Float8Encoding) Same(e Encoding) bool {
	o, ok := e.(*Float8Encoding)
	return ok && c.SmallFloat == o.SmallFloat && c.Layout == o.Layout && c.AsBytes == o.AsBytes &&
		slices.Equal(c.ScaleShape, o.ScaleShape)
}
