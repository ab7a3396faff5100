package weightonly

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/biascorrection"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

type Quantizer struct {
	Spec    spec.QuantSpec
	Blocks  *BlockOptions // instead of Spec; nil for per-channel weights
	buffers *spec.BufferPool
	Bias    biascorrection.Correction
	// denseReason is the detail of pass.DenseAtRunTime, if DequantizeLinear cannot be used: the opset, and the option or node that keeps it.
	denseReason string
}

func (w *Quantizer) Run(ctx context.Context, s *pass.Step) error {
	return w.Store(ctx, s, pass.Weights(s.Model))
}

// Store quantizes vs.
func (w *Quantizer) Store(ctx context.Context, s *pass.Step, vs []*ir.Value) error {
	w.denseReason, w.buffers = "", spec.NewBufferPool()
	if err := w.Blocks.applyAWQ(ctx, s); err != nil {
		return err
	}
	if to := w.opset(); weights.OpsetBelow(s.Model, to) && w.Blocks.usesNBits() {
		w.denseReason = fmt.Sprintf("opset %d, --form %s", s.Model.Opset(""), NBitsForm)
	} else if weights.OpsetBelow(s.Model, to) && w.raisesOpset(s, vs) {
		var no *opset.Unsupported
		if err := weights.RaiseOpset(ctx, s, to); errors.As(err, &no) {
			w.denseReason = fmt.Sprintf("opset %d, %s %s", no.From, no.Op, no.Node)
		} else if err != nil {
			return err
		}
	}
	var plans []*plan
	for _, v := range vs {
		p, reason := w.plan(s, v)
		if !reason.None() {
			s.Ledger.Skip(v, pass.Consumers(v), reason)
			continue
		}
		plans = append(plans, p)
	}
	plans, err := spec.Precheck(ctx, s, plans, func(p *plan) (*ir.Value, spec.Encoding) { return p.Base, p.encoding })
	if err != nil {
		return err
	}
	if err := w.Blocks.applyGPTQ(ctx, s, plans); err != nil {
		return err
	}
	encodings := map[*ir.Value]spec.Encoding{}
	for _, p := range plans {
		encodings[p.Base] = p.encoding
	}
	if err := w.Bias.Apply(ctx, s, encodings); err != nil {
		return err
	}
	return w.rewrite(ctx, s, plans)
}

// opset is the first one that supports the form of products, or the data type.
func (w *Quantizer) opset() int64 {
	if w.Blocks != nil {
		return blockTypes[w.Blocks.Bits].opset
	}
	return weights.DequantizeOpset
}

// raisesOpset reports whether some weight would be stored before DequantizeLinear, or in a data type of a later opset.
func (w *Quantizer) raisesOpset(s *pass.Step, vs []*ir.Value) bool {
	for _, v := range vs {
		if p, reason := w.planAnyOpset(s, v); reason.None() && (p.form.Name == pass.Dequantize.Name || w.Blocks != nil && w.Blocks.Bits < 8) {
			return true
		}
	}
	return false
}
