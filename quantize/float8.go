package quantize

import (
	"context"
	"flag"
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Float8 stores weights as floats of 8 bits, each channel scaled to their range, behind Cast and Mul, which runtimes fold.
var Float8 = &pass.Method{
	Name:    "float8",
	Command: "quantize",
	Doc:     "8-bit floats for weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float32 arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		w := &SmallFloatQuantizer{Form: pass.CastMul, Encode: NewFloat8}
		typ := "e4m3fn"
		fs.Var(word{&typ, []string{"e4m3fn", "e5m2"}}, "type", "`type` of the codes: e4m3fn, or e5m2 for weights of a wider range")
		fs.Var(choice{&w.PerTensor, true}, "per-tensor", "one scale for the whole tensor")
		return func(c *pass.Context) error {
			w.SmallFloat = Float8Types[typ]
			return w.Run(c)
		}
	},
}

// Cast knows both from opset 19 on.
var Float8Types = map[string]SmallFloat{
	"e4m3fn": {dt: ir.Float8E4M3FN, format: kernel.E4M3FN, opset: 19},
	"e5m2":   {dt: ir.Float8E5M2, format: kernel.E5M2, opset: 19},
}

// A scaled is a weight in 8-bit floats with the scale of each channel.
type Float8Encoding struct {
	SmallFloat
	Weight     *ir.Tensor
	Layout     ScaleLayout
	ScaleShape []int64 // of the scales
}

func NewFloat8(t SmallFloat, v *ir.Value, axes []int) SmallFloatEncoding {
	s := &Float8Encoding{SmallFloat: t, Weight: v.Const}
	s.Layout, s.ScaleShape = LayoutOfAxes(v.Const.Shape, axes)
	return s
}

func (s *Float8Encoding) Bytes() int64 { return s.Weight.Elems() + 4*s.Layout.NumScales() }

func (s *Float8Encoding) Recipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "float8",
		In:   []*ir.Tensor{s.Weight},
		Out:  []ir.Spec{{Name: s.Weight.Name, DType: s.dt, Shape: s.Weight.Shape}, {Name: s.Weight.Name, DType: ir.Float, Shape: s.ScaleShape}},
		Work: 2*s.Layout.bufferElems()*5 + min(s.Layout.Elems(), maxHeldElems)*4 + 8*s.Layout.NumScales(),
		Run:  s.run,
	}
}

// run goes through the weight for its scales and then for its codes.
func (s *Float8Encoding) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	r := newSegmentReader(nil, in[0], s.Weight.DType, s.Layout, 2)
	defer r.close()
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
		if _, err := out[outQuantized].Write(buf[:q.n]); err != nil {
			return err
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	_, err = out[outScales].Write(kernel.Bytes(scale))
	return err
}

// measure is the scale of each channel, which brings its largest magnitude to that of the format.
func (s *Float8Encoding) observe(ctx context.Context, r *segmentReader) ([]float32, error) {
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
		if why := noScaleReason(bits, s.format.Largest()); why != "" {
			return nil, &pass.Unfit{Tensor: s.Weight.Name, Reason: why}
		}
		scale[i] = math.Float32frombits(bits) / s.format.Largest()
		if bits == 0 {
			scale[i] = 1
		}
	}
	return scale, nil
}

// codes writes the codes of one run.
func (s *Float8Encoding) quantize(dst []byte, x []float32, q segment, scale []float32) {
	if !s.Layout.columnwise() {
		s.format.Codes(dst, x, scale[q.first])
		return
	}
	s.format.CodesCols(dst, x, scale[q.first:][:s.Layout.channels])
}

// emitScaled is Cast and Mul.
func (s *Float8Encoding) EmitDequantize(g *ir.Graph, at *ir.Node, codes, scales *ir.Value) *ir.Value {
	x := g.Insert(at, "Cast", []*ir.Value{codes}, ir.IntAttr("to", int64(ir.Float)))
	return g.Insert(at, "Mul", []*ir.Value{x, scales})
}

// restore makes the float weight from codes and scales.
func (s *Float8Encoding) Restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "restore", In: parts, Out: []ir.Spec{s.Weight.Spec}, Work: 2 * s.Layout.bufferElems() * 5}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		scale := make([]float32, s.Layout.NumScales())
		if err := ir.ReadFull(in[outScales], kernel.Bytes(scale), 0); err != nil {
			return err
		}
		codes, x := make([]byte, s.Layout.bufferElems()), make([]float32, s.Layout.bufferElems())
		w := &FloatWriter{w: out[0], dt: s.Weight.DType}
		return s.Layout.segments(func(q segment) error {
			if err := ir.ReadFull(in[outQuantized], codes[:q.n], q.at); err != nil {
				return err
			}
			y := x[:q.n]
			s.dequantize(y, codes[:q.n], q, scale)
			return w.Flush(ctx, &y)
		})
	}
	return r.Derive()[0]
}

func (s *Float8Encoding) dequantize(dst []float32, codes []byte, q segment, scale []float32) {
	if !s.Layout.columnwise() {
		s.format.Values(dst, codes, scale[q.first])
		return
	}
	s.format.Values(dst, codes, 1)
	cols := scale[q.first:][:s.Layout.channels]
	for i := range dst {
		dst[i] *= cols[i%len(cols)]
	}
}
