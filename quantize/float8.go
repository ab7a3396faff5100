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
		w := &small{form: pass.CastMul, weight: newScaled}
		typ := "e4m3fn"
		fs.Var(word{&typ, []string{"e4m3fn", "e5m2"}}, "type", "`type` of the codes: e4m3fn, or e5m2 for weights of a wider range")
		fs.Var(choice{&w.perTensor, true}, "per-tensor", "one scale for the whole tensor")
		return func(c *pass.Context) error {
			w.smallType = float8Types[typ]
			return w.run(c)
		}
	},
}

// Cast knows both from opset 19 on.
var float8Types = map[string]smallType{
	"e4m3fn": {dt: ir.Float8E4M3FN, format: kernel.E4M3FN, opset: 19},
	"e5m2":   {dt: ir.Float8E5M2, format: kernel.E5M2, opset: 19},
}

// A scaled is a weight in 8-bit floats with the scale of each channel.
type scaled struct {
	smallType
	t     *ir.Tensor
	g     grid
	shape []int64 // of the scales
}

func newScaled(t smallType, v *ir.Value, axes []int) smallWeight {
	s := &scaled{smallType: t, t: v.Const}
	s.g, s.shape = keptAxes(v.Const.Shape, axes)
	return s
}

func (s *scaled) bytes() int64 { return s.t.Elems() + 4*s.g.scales() }

func (s *scaled) recipe() *ir.Recipe {
	return &ir.Recipe{
		Name: "float8",
		In:   []*ir.Tensor{s.t},
		Out:  []ir.Spec{{Name: s.t.Name, DType: s.dt, Shape: s.t.Shape}, {Name: s.t.Name, DType: ir.Float, Shape: s.shape}},
		Work: 2*s.g.window()*5 + min(s.g.elems(), holdElems)*4 + 8*s.g.scales(),
		Run:  s.run,
	}
}

// run goes through the weight for its scales and then for its codes.
func (s *scaled) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	r := newReader(nil, in[0], s.t.DType, s.g, 2)
	defer r.close()
	scale, err := s.measure(ctx, r)
	if err != nil {
		return err
	}
	buf := make([]byte, s.g.window())
	err = s.g.runs(func(q run) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		s.codes(buf[:q.n], x, q, scale)
		if _, err := out[outCodes].Write(buf[:q.n]); err != nil {
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
func (s *scaled) measure(ctx context.Context, r *reader) ([]float32, error) {
	m := newRanges(s.g.scales(), scheme{symmetric: true})
	err := s.g.runs(func(q run) error {
		x, err := r.next(q)
		if err != nil {
			return err
		}
		m.add(s.g, q, x)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	scale := make([]float32, len(m.bits))
	for i, bits := range m.bits {
		if why := noScale(bits, s.format.Largest()); why != "" {
			return nil, &pass.Unfit{Tensor: s.t.Name, Reason: why}
		}
		scale[i] = math.Float32frombits(bits) / s.format.Largest()
		if bits == 0 {
			scale[i] = 1
		}
	}
	return scale, nil
}

// codes writes the codes of one run.
func (s *scaled) codes(dst []byte, x []float32, q run, scale []float32) {
	if !s.g.cols() {
		s.format.Codes(dst, x, scale[q.first])
		return
	}
	s.format.CodesCols(dst, x, scale[q.first:][:s.g.chans])
}

func (s *scaled) emit(g *ir.Graph, at *ir.Node, codes, scales *ir.Value) *ir.Value {
	x := g.Insert(at, "Cast", []*ir.Value{codes}, ir.IntAttr("to", int64(ir.Float)))
	return g.Insert(at, "Mul", []*ir.Value{x, scales})
}

// restore makes the float weight from codes and scales.
func (s *scaled) restore(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "restore", In: parts, Out: []ir.Spec{s.t.Spec}, Work: 2 * s.g.window() * 5}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		scale := make([]float32, s.g.scales())
		if err := ir.ReadFull(in[outScales], kernel.Bytes(scale), 0); err != nil {
			return err
		}
		codes, x := make([]byte, s.g.window()), make([]float32, s.g.window())
		w := &floatWriter{w: out[0], dt: s.t.DType}
		return s.g.runs(func(q run) error {
			if err := ir.ReadFull(in[outCodes], codes[:q.n], q.at); err != nil {
				return err
			}
			y := x[:q.n]
			s.values(y, codes[:q.n], q, scale)
			return w.flush(ctx, &y)
		})
	}
	return r.Derive()[0]
}

func (s *scaled) values(dst []float32, codes []byte, q run, scale []float32) {
	if !s.g.cols() {
		s.format.Values(dst, codes, scale[q.first])
		return
	}
	s.format.Values(dst, codes, 1)
	cols := scale[q.first:][:s.g.chans]
	for i := range dst {
		dst[i] *= cols[i%len(cols)]
	}
}
