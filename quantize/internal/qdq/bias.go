package qdq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A biasEncoding is the bias of a layer as it will be stored.
type biasEncoding struct {
	encoding        *spec.PerChannel // of the layer's weight
	weight          *rewrite.PerChannel
	bias            *ir.Tensor
	shape           []int64 // of the layer's input: that of the bias after the views between
	group           int64
	activationScale float32   // scale of the layer's input
	means           []float64 // of the layer's input, by channel; nil without bias correction
	float           bool
}

// bias stores l's bias as int32, whose scale is the product of the activation's and the weight's, or as floats.
func (e *emitter) bias(l *quantizedLayer, k *biasEncoding) {
	base, old := l.bias.Base, l.node.Input(2)
	consumers, reason := pass.Consumers(base), weights.RemoveFromInputs(base)
	corrected := k.correctedBias()
	row := pass.Row{Form: pass.InPlace, Notes: pass.Notes(reason)}
	// A corrected bias differs from the original on purpose: there is no error to report.
	if k.means == nil {
		row.Restore = k.dequantized
	}
	if k.float {
		now := e.g.AddConst(base.Name+"_q", corrected)
		l.node.SetInput(2, now)
		row.After = []pass.Part{{Role: pass.Payload, Value: now, Tensor: corrected}}
		row.Bound = pass.ExactBound(corrected, pass.Itself)
	} else {
		ts := k.recipe(corrected).Derive()
		now := e.g.AddConst(base.Name+"_q", ts[0])
		row.Form, row.Bound = qdqForm, k.bound(corrected)
		scales := e.g.AddConst(base.Name+"_s", ts[1])
		row.After = []pass.Part{{Role: pass.Payload, Value: now, Tensor: ts[0]},
			{Role: pass.Scales, Value: scales, Tensor: ts[1]}}
		var attrs []*ir.Attr
		if k.encoding.Axis >= 0 {
			attrs = append(attrs, ir.IntAttr("axis", int64(len(k.shape)-1)))
		}
		l.node.SetInput(2, e.g.Insert(l.node, "DequantizeLinear", []*ir.Value{now, scales}, attrs...))
	}
	old.Drop()
	if !e.biases[base] {
		e.biases[base] = true
		e.step.Ledger.Changed(base, k.bias, consumers, row)
	}
}

// correctedBias is the bias as floats: corrected by the mean error that the stored weight adds to outputs, if means are
// known.
func (k *biasEncoding) correctedBias() *ir.Tensor {
	if k.means == nil {
		return k.bias
	}
	r := &ir.Recipe{
		Name: "correct-bias", In: []*ir.Tensor{k.bias, k.weight.ScaleValue.Const, k.encoding.Weight},
		Work: 9*k.encoding.Weight.Elems() + 12*k.bias.Elems(),
		Out:  []ir.Spec{{Name: k.bias.Name, DType: ir.Float, Shape: k.shape}},
	}
	if k.weight.ZeroPointValue != nil {
		r.In = append(r.In, k.weight.ZeroPointValue.Const)
	}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		x := make([]float32, k.bias.Elems())
		if err := ir.ReadFull(in[0], kernel.Bytes(x), 0); err != nil {
			return err
		}
		if err := k.correct(ctx, x, in[1:]); err != nil {
			return err
		}
		_, err := out[0].Write(kernel.Bytes(x))
		return err
	}
	return r.Derive()[0]
}

// recipe computes quantized values and scales of the corrected bias.
func (k *biasEncoding) recipe(corrected *ir.Tensor) *ir.Recipe {
	return &ir.Recipe{
		Name: "quantize-bias", In: []*ir.Tensor{corrected, k.weight.ScaleValue.Const}, Work: 12 * k.bias.Elems(),
		Out: []ir.Spec{{Name: k.bias.Name, DType: ir.Int32, Shape: k.shape},
			{Name: k.bias.Name, DType: ir.Float, Shape: k.encoding.ScaleShape}},
		Run: k.quantize,
	}
}

func (k *biasEncoding) quantize(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
	x, scales := make([]float32, k.bias.Elems()), make([]float32, k.encoding.Layout.NumScales())
	if err := errors.Join(ir.ReadFull(in[0], kernel.Bytes(x), 0),
		ir.ReadFull(in[1], kernel.Bytes(scales), 0)); err != nil {
		return err
	}
	quantized, err := quantizeBias(k.bias.Name, x, scales, k.activationScale)
	if err != nil {
		return err
	}
	if _, err := out[0].Write(kernel.Bytes(quantized)); err != nil {
		return err
	}
	_, err = out[1].Write(kernel.Bytes(scales))
	return err
}

// bound is half a scale of the corrected bias, and the rounding of the floats that are divided and restored.
func (k *biasEncoding) bound(corrected *ir.Tensor) *pass.Bound {
	const ones = 0x01010101 // the int32 with 1 in each byte, of which a restored element shows the scale
	return &pass.Bound{
		Of: corrected,
		Tensors: func(parts []*ir.Tensor) []*ir.Tensor {
			with := slices.Clone(parts)
			with[0] = &ir.Tensor{Spec: parts[0].Spec, Source: ir.Span{R: spec.Repeated(1)}}
			return []*ir.Tensor{k.dequantized(parts), k.dequantized(with)}
		},
		New: func(context.Context, io.ReaderAt, func(pass.Reason)) (func(x []float32, y [][]float32) string, error) {
			at := 0
			return func(x []float32, y [][]float32) string {
				for i, v := range x {
					scale := float64(y[1][i]) / ones
					if e := math.Abs(float64(v) - float64(y[0][i])); !(e <= scale/2+0x1p-22*math.Abs(float64(v))) {
						return fmt.Sprintf("element %d is %g, and stored as %g at scale %g", at+i, v, y[0][i], scale)
					}
				}
				at += len(x)
				return ""
			}, nil
		},
	}
}

// quantizeBias turns the scales of weights into those of the bias, and quantizes it.
func quantizeBias(name string, x, scales []float32, activation float32) ([]int32, error) {
	for i := range scales {
		// QLinearConv in ONNX: the bias has the scale of the products, x_scale * w_scale, and the zero point 0.
		scales[i] *= activation
	}
	quantized := make([]int32, len(x))
	for i := range x {
		// One scale for each channel, or one for all.
		s := scales[i%len(scales)]
		q := math.RoundToEven(float64(x[i]) / float64(s))
		if !(math.Abs(q) < math.MaxInt32/2) { // the rest of the range is for sums of products
			return nil, &pass.Unfit{Tensor: name,
				Reason: pass.Reason{Code: pass.NotRepresented, Detail: fmt.Sprintf("%g in int32 at scale %g", x[i], s)}}
		}
		quantized[i] = int32(q)
	}
	return quantized, nil
}

// dequantized is the float bias from its parts.
func (k *biasEncoding) dequantized(parts []*ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "dequantize-bias", In: parts, Out: []ir.Spec{k.bias.Spec}, Work: 12 * k.bias.Elems()}
	r.Run = func(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
		quantized, scales := make([]int32, k.bias.Elems()), make([]float32, k.encoding.Layout.NumScales())
		if err := errors.Join(ir.ReadFull(in[0], kernel.Bytes(quantized), 0),
			ir.ReadFull(in[1], kernel.Bytes(scales), 0)); err != nil {
			return err
		}
		x := make([]float32, len(quantized))
		for i, q := range quantized {
			x[i] = float32(q) * scales[i%len(scales)]
		}
		_, err := out[0].Write(kernel.Bytes(x))
		return err
	}
	return r.Derive()[0]
}

// precheck, in runs with that option, reads weights and biases and keeps layers in float whose values no scale
// represents. Such a weight is skipped. It reports whether there are any: each time a node less is a layer, or one more
// is in float, so that there is an end.
func (s *Quantizer) precheck(ctx context.Context, step *pass.Step, f *quantizedGraph,
	known map[string]calibrate.Summary) (some bool, err error) {
	if !step.Env.Precheck {
		return false, nil
	}
	for n := range step.Model.Graph.Nodes() {
		l := f.layers[n]
		if l == nil {
			continue
		}
		a, err := weightQParams(ctx, step, l)
		// The weight itself, not only the bias at the scale of this input: such a node is no layer any more.
		weight := err != nil
		if !weight && !l.float {
			scale, _, _ := s.Activations.qparams(known[f.scaleSource(n.Input(0)).Name].Range)
			err = s.checkBias(ctx, step, l, a, scale)
		}
		var unfit *pass.Unfit
		switch {
		case errors.As(err, &unfit):
			s.floatNodes[n], s.unfit[n], some = true, weight, true
			if !l.float {
				step.Ledger.Note(unfit.Tensor, pass.Reason{Code: floatReason(unfit.Reason.Code), Detail: unfit.Reason.Detail}.At(n))
			}
		case err != nil:
			return false, err
		}
	}
	return some, nil
}

// floatReason is the reason of a node that is computed in float for that of its weight or bias.
func floatReason(weight pass.Code) pass.Code {
	if weight == pass.NotFinite {
		return pass.FloatNotFinite
	}
	return pass.FloatWeight
}

// weightQParams are the scales of l's weight.
func weightQParams(ctx context.Context, step *pass.Step, l *quantizedLayer) (*spec.QParams, error) {
	in, err := step.Eval.Open(ctx, l.encoding.Weight)
	if err != nil {
		return nil, err
	}
	return spec.ObserveQParams(ctx, in, l.encoding.Weight, l.encoding.Layout, l.encoding.Spec)
}

// checkBias is the error of the recipe of l's bias.
func (s *Quantizer) checkBias(ctx context.Context, step *pass.Step, l *quantizedLayer, a *spec.QParams,
	activation float32) error {
	if l.bias == nil || s.FloatBias {
		return nil
	}
	b, err := step.Eval.ReadAll(ctx, l.bias.Base.Const)
	if err != nil {
		return err
	}
	_, err = quantizeBias(l.bias.Base.Name, ir.View[float32](&ir.Array{DType: ir.Float, Data: b}), a.Scale, activation)
	return err
}
