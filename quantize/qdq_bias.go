package quantize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/calibrate"
)

// bias stores l's bias as int32 codes that are added to the sums of products: their scale is the product of the
// activation's and the weight's.
func (e *emitter) bias(l *layer, scale float32) {
	b, readers := l.bias, pass.Readers(l.bias)
	ts := biasRecipe(b.Const, e.scales[l.weight], scale).Derive()
	codes, scales := e.g.AddConst(b.Name+"_q", ts[0]), e.g.AddConst(b.Name+"_s", ts[1])
	var attrs []*ir.Attr
	if l.cd.axis >= 0 {
		attrs = append(attrs, ir.IntAttr("axis", int64(len(b.Const.Shape)-1)))
	}
	before := b.Const
	l.node.SetInput(2, e.g.Insert(l.node, "DequantizeLinear", []*ir.Value{codes, scales}, attrs...))
	reason := noInput(b)
	b.Drop()
	e.c.Changed(b, before, readers, pass.Row{
		Form: qdq, Reason: reason, Restore: restoreBias(before),
		After: []pass.Part{{Role: pass.Payload, Value: codes, Tensor: codes.Const}, {Role: pass.Scales, Value: scales, Tensor: scales.Const}},
	})
}

// biasRecipe makes codes and scales of a bias.
func biasRecipe(b, weight *ir.Tensor, activation float32) *ir.Recipe {
	return &ir.Recipe{
		Name: "quantize-bias", In: []*ir.Tensor{b, weight}, Work: 12 * b.Elems(),
		Out: []ir.Spec{{Name: b.Name, DType: ir.Int32, Shape: b.Shape}, {Name: b.Name, DType: ir.Float, Shape: weight.Shape}},
		Run: func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
			x, scales := make([]float32, b.Elems()), make([]float32, weight.Elems())
			if err := errors.Join(ir.ReadFull(in[0], kernel.Bytes(x), 0), ir.ReadFull(in[1], kernel.Bytes(scales), 0)); err != nil {
				return err
			}
			codes, err := biasCodes(b.Name, x, scales, activation)
			if err != nil {
				return err
			}
			if _, err := out[0].Write(kernel.Bytes(codes)); err != nil {
				return err
			}
			_, err = out[1].Write(kernel.Bytes(scales))
			return err
		},
	}
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

// restoreBias makes the float bias of its parts.
func restoreBias(before *ir.Tensor) func([]*ir.Tensor) *ir.Tensor {
	return func(parts []*ir.Tensor) *ir.Tensor {
		r := &ir.Recipe{Name: "dequantize-bias", In: parts, Out: []ir.Spec{before.Spec}, Work: 12 * before.Elems()}
		r.Run = func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
			codes, scales := make([]int32, before.Elems()), make([]float32, parts[1].Elems())
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
func (s *static) precheck(c *pass.Context, f *flow, ranges map[string]calibrate.Range) (some bool, err error) {
	if !c.Precheck {
		return false, nil
	}
	for n := range c.Model.Graph.Nodes() {
		l := f.layers[n]
		if l == nil {
			continue
		}
		scale, _, _ := s.codes.fit(ranges[f.root(n.Input(0)).Name])
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
