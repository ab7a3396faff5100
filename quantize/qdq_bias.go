package quantize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A bias is that of one layer as it will be stored.
type bias struct {
	cd         *coding // of the layer's weight
	weight     *stored
	b          *ir.Tensor
	group      int64
	activation float32   // scale of what the layer reads
	means      []float64 // of what it reads, by channel; nil to leave the bias as it is
	float      bool
}

// bias stores l's bias: as int32 codes that are added to the sums of products, whose scale is the product of the
// activation's and the weight's, or as floats.
func (e *emitter) bias(l *layer, k *bias) {
	readers, reason := pass.Readers(l.bias), noInput(l.bias)
	ts := k.recipe().Derive()
	now := e.g.AddConst(l.bias.Name+"_q", ts[0])
	parts := []pass.Part{{Role: pass.Payload, Value: now, Tensor: ts[0]}}
	form := qdq
	if k.float {
		l.node.SetInput(2, now)
		form = pass.InPlace
	} else {
		scales := e.g.AddConst(l.bias.Name+"_s", ts[1])
		parts = append(parts, pass.Part{Role: pass.Scales, Value: scales, Tensor: ts[1]})
		var attrs []*ir.Attr
		if k.cd.axis >= 0 {
			attrs = append(attrs, ir.IntAttr("axis", int64(len(k.b.Shape)-1)))
		}
		l.node.SetInput(2, e.g.Insert(l.node, "DequantizeLinear", []*ir.Value{now, scales}, attrs...))
	}
	l.bias.Drop()
	if !e.biases[l.bias] {
		e.biases[l.bias] = true
		e.c.Changed(l.bias, k.b, readers, pass.Row{Form: form, Reason: reason, After: parts, Restore: k.restore()})
	}
}

// recipe makes codes and scales, or floats.
func (k *bias) recipe() *ir.Recipe {
	r := &ir.Recipe{Name: "quantize-bias", In: []*ir.Tensor{k.b, k.weight.scale.Const}, Work: 12 * k.b.Elems()}
	if k.means != nil {
		r.In, r.Work = append(r.In, k.cd.t), r.Work+9*k.cd.t.Elems()
		if k.weight.zero != nil {
			r.In = append(r.In, k.weight.zero.Const)
		}
	}
	if r.Out = []ir.Spec{{Name: k.b.Name, DType: ir.Int32, Shape: k.b.Shape}, {Name: k.b.Name, DType: ir.Float, Shape: k.cd.scales}}; k.float {
		r.Out = []ir.Spec{k.b.Spec}
	}
	r.Run = k.run
	return r
}

func (k *bias) run(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	x, scales := make([]float32, k.b.Elems()), make([]float32, k.cd.g.scales())
	if err := errors.Join(ir.ReadFull(in[0], kernel.Bytes(x), 0), ir.ReadFull(in[1], kernel.Bytes(scales), 0)); err != nil {
		return err
	}
	if k.means != nil {
		if err := k.correct(ctx, x, in[1:]); err != nil {
			return err
		}
	}
	if k.float {
		_, err := out[0].Write(kernel.Bytes(x))
		return err
	}
	codes, err := biasCodes(k.b.Name, x, scales, k.activation)
	if err != nil {
		return err
	}
	if _, err := out[0].Write(kernel.Bytes(codes)); err != nil {
		return err
	}
	_, err = out[1].Write(kernel.Bytes(scales))
	return err
}

// biasCodes turns the scales of weights into those of the bias, and rounds it.
func biasCodes(name string, x, scales []float32, activation float32) ([]int32, error) {
	for i := range scales {
		scales[i] *= activation
	}
	codes := make([]int32, len(x))
	for i := range x {
		s := scales[i%len(scales)]
		q := math.RoundToEven(float64(x[i]) / float64(s))
		if !(math.Abs(q) < math.MaxInt32/2) { // sums of products need room too
			return nil, &pass.Unfit{Tensor: name, Reason: fmt.Sprintf("%g is out of reach of 32-bit codes at the scale %g of its layer", x[i], s)}
		}
		codes[i] = int32(q)
	}
	return codes, nil
}

// restore makes the float bias of its parts, unless it was changed on purpose.
func (k *bias) restore() func([]*ir.Tensor) *ir.Tensor {
	if k.means != nil {
		return nil
	}
	return func(parts []*ir.Tensor) *ir.Tensor {
		r := &ir.Recipe{Name: "dequantize-bias", In: parts, Out: []ir.Spec{k.b.Spec}, Work: 12 * k.b.Elems()}
		r.Run = func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
			codes, scales := make([]int32, k.b.Elems()), make([]float32, k.cd.g.scales())
			if err := errors.Join(ir.ReadFull(in[0], kernel.Bytes(codes), 0), ir.ReadFull(in[1], kernel.Bytes(scales), 0)); err != nil {
				return err
			}
			x := make([]float32, len(codes))
			for i, q := range codes {
				x[i] = float32(q) * scales[i%len(scales)]
			}
			_, err := out[0].Write(kernel.Bytes(x))
			return err
		}
		return r.Derive()[0]
	}
}

// precheck, where the pipeline asks for it, reads weights and biases and takes the layers out whose values no codes can
// stand for. It reports whether there are any.
func (s *static) precheck(c *pass.Context, f *flow, known map[string]calibrate.Summary) (some bool, err error) {
	if !c.Precheck {
		return false, nil
	}
	for n := range c.Model.Graph.Nodes() {
		l := f.layers[n]
		if l == nil || l.float {
			continue
		}
		scale, _, _ := s.codes.fit(known[f.root(n.Input(0)).Name].Range)
		err := s.check(c, l, scale)
		var unfit *pass.Unfit
		if errors.As(err, &unfit) {
			s.left[n], some = true, true
			c.Note(unfit.Tensor, fmt.Sprintf("%s computes in float: %s", n.Label(), unfit.Reason))
		} else if err != nil {
			return false, err
		}
	}
	return some, nil
}

// check is the error of l's recipes.
func (s *static) check(c *pass.Context, l *layer, activation float32) error {
	in, err := c.Eval.Open(c, l.cd.t)
	if err != nil {
		return err
	}
	a, err := measure(c, in, l.cd.t, l.cd.g, l.cd.s)
	if err != nil || l.bias == nil || s.floatBias {
		return err
	}
	b, err := c.Eval.ReadAll(c, l.bias.Const)
	if err != nil {
		return err
	}
	_, err = biasCodes(l.bias.Name, ir.View[float32](&ir.Array{DType: ir.Float, Data: b}), a.scale, activation)
	return err
}
