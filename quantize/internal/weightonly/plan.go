package weightonly

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A plan is the encoding and form of one weight.
type plan struct {
	*weights.Weight
	consumers []*ir.Node
	uses      []*weights.Use
	encoding  spec.Encoding
	form      pass.Form
	notes     []pass.Reason
}

func (p *plan) note(r pass.Reason) { p.notes = append(p.notes, pass.Notes(r)...) }

// plan chooses the form for v, or returns the reason why it is skipped.
func (w *Quantizer) plan(s *pass.Step, v *ir.Value) (*plan, pass.Reason) {
	p, reason := w.planAnyOpset(s, v)
	if !reason.None() {
		return p, reason
	}
	if have, need := v.Graph().Opset(""), p.opset(); have < need {
		return nil, pass.Reason{Code: pass.Opset, Detail: fmt.Sprintf("%d below %d", have, need)}
	}
	return p, pass.Reason{}
}

// planAnyOpset is plan without the requirement of an opset.
func (w *Quantizer) planAnyOpset(s *pass.Step, v *ir.Value) (*plan, pass.Reason) {
	us, reason := weights.Supported(s, v)
	if !reason.None() {
		return nil, reason
	}
	p := w.choose(v, us)
	p.consumers, p.uses = pass.Consumers(v), us
	if before, after := v.Const.Bytes(), p.encoding.Bytes()+p.overhead(); after >= before {
		return nil, pass.Reason{Code: pass.Larger, Detail: fmt.Sprintf("%d bytes → %d bytes", before, after)}
	}
	return p, pass.Reason{}
}

// choose picks a form that stays quantized at run time if every consumer supports it, else one that runtimes fold.
func (w *Quantizer) choose(v *ir.Value, us []*weights.Use) *plan {
	if w.Blocks != nil {
		return w.chooseBlocks(v, us)
	}
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.Dequantize}
	gathers := 0
	for _, u := range us {
		if u.Consumer == nil || !u.Consumer.StaysQuantized(v, ir.Float) {
			return w.foldedPlan(v, us)
		}
		if u.Consumer.Side == weights.Lookup {
			gathers++
		}
		p.Consumers = append(p.Consumers, u.Consumer)
	}
	e, reason := rewrite.PerChannelEncoding(p.Weight, w.Spec, w.buffers)
	if !reason.None() || slices.ContainsFunc(p.Consumers, func(s *weights.Consumer) bool {
		// Scales along the axis that a product sums up cannot be applied to its sums.
		return e.Axis >= 0 && s.ChannelAxis() != e.Axis
	}) || !weights.SameScope(v, p.Consumers) {
		return w.foldedPlan(v, us)
	}
	switch products := len(p.Consumers) - gathers; {
	case products == 0:
		p.form = pass.GatherQuantized
	case w.denseReason != "":
		// A Mul by the scales after the product has no place for zero points; it takes notable time after short
		// products; and a lookup needs scales of rows.
		if e.Spec.ZeroPoint() != 0 || !e.Spec.Symmetric || gathers > 0 && e.Axis < 0 || p.shortProduct() {
			return w.foldedPlan(v, us)
		}
		p.form = pass.CastProduct
		p.note(w.dense())
	case products > 1 || gathers > 0 && e.Axis < 0:
		// From four consumers on, one dense weight is also less memory than a packed one of each product.
		return w.foldedPlan(v, us) // see foldShared
	}
	p.encoding = e
	return p
}

// shortProduct reports whether a product of p takes notably longer with a Mul of its output.
func (p *plan) shortProduct() bool {
	return slices.ContainsFunc(p.Consumers, func(s *weights.Consumer) bool {
		return s.Side != weights.Lookup && s.ShortProduct()
	})
}

// foldedPlan stores v before Cast and Mul, which every consumer supports.
func (w *Quantizer) foldedPlan(v *ir.Value, us []*weights.Use) *plan {
	if w.Blocks != nil {
		return w.foldBlocks(v, us)
	}
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.CastMul}
	shape := v.Const.Shape
	axes := us[0].ScaleAxes
	if w.Spec.PerTensor {
		axes = nil
	}
	e := &spec.PerChannel{Buffers: w.buffers, Weight: v.Const, Shape: shape, Spec: w.Spec, Axis: -1}
	e.Layout, e.ScaleShape = spec.LayoutOfAxes(shape, axes)
	p.encoding = e
	if us[0].Consumer != nil {
		p.note(w.dense())
	}
	return p
}

// opset is the first one that has the operators of the form, whatever the data type. The padding of values that are
// unpacked from bytes, and of blocks of MatMulNBits, is cut by a Slice with inputs.
func (p *plan) opset() int64 {
	e, blocks := p.encoding.(*spec.Blockwise)
	if !blocks || !e.Layout.BytePacked() && !e.Layout.ForNBits {
		return weights.CastOpset
	}
	if e.Layout.ForNBits && !slices.ContainsFunc(p.Consumers, func(c *weights.Consumer) bool {
		return c.Side == weights.Lookup
	}) {
		return weights.CastOpset
	}
	return weights.UnpackOpset
}
