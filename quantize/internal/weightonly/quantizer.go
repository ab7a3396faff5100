package weightonly

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/biascorrection"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A Quantizer is the method with its options.
type Quantizer struct {
	Spec    spec.QuantSpec
	Blocks  *BlockOptions // instead of Spec; nil for per-channel weights
	buffers *spec.BufferPool
	Bias    biascorrection.Correction
	// denseReason is the detail of pass.DenseAtRunTime, if products have no DequantizeLinear: the runtime that lacks
	// it, or the opset and the option or node that keeps it.
	denseReason string
	packed      bool // quantized values of less than 8 bits are packed into bytes, for lack of a data type
	large       bool // large matrices have DequantizeLinear all the same
	padding     bool // blocks of DequantizeLinear need not divide rows
	fused       bool // the runtime fuses DequantizeLinear of small matrices, too
	nbits       bool // the runtime has MatMulNBits of the values' bits
	fastNBits   bool // products with MatMulNBits of 4 bits are not slower than float
}

// Run implements pass.Options.
func (w *Quantizer) Run(ctx context.Context, s *pass.Step) error {
	return w.Store(ctx, s, pass.Weights(s.Model))
}

// Store quantizes vs.
func (w *Quantizer) Store(ctx context.Context, s *pass.Step, vs []*ir.Value) error {
	w.buffers = spec.NewBufferPool()
	// First, as it changes the weights that all others read.
	if err := w.Blocks.applyAWQ(ctx, s); err != nil {
		return err
	}
	// Opsets before plans: a weight for whose form no opset is found is skipped with that reason.
	if err := w.prepare(ctx, s, vs); err != nil {
		return err
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
	// Rules for scales and GPTQ set how encodings round; the correction of biases then uses the errors of this
	// rounding.
	if err := w.Blocks.searchScales(ctx, s, plans); err != nil {
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

// prepare decides by the target whether products have DequantizeLinear, and whether values are packed into bytes, and
// raises the opset as far as that requires.
func (w *Quantizer) prepare(ctx context.Context, s *pass.Step, vs []*ir.Value) error {
	t, cast, fused := s.Env.Target, pass.Capability(0), pass.Fused8
	if w.Blocks != nil {
		cast, fused = blockTypes[w.Blocks.Bits].cast, blockTypes[w.Blocks.Bits].fused
		w.nbits = t.Can(blockTypes[w.Blocks.Bits].nbits)
		w.fastNBits = t.Can(pass.FastNBits4)
	}
	w.fused = t.Can(fused)
	w.denseReason, w.packed, w.padding = "", !t.Can(cast), t.Can(pass.Padding)
	if !w.fused && !w.Blocks.dequantizes() {
		w.denseReason = t.Without(fused)
	}
	w.large = w.Blocks != nil && w.Blocks.Bits == 4 && t.Can(pass.FusedLarge4|pass.Dequantize4)
	if err := w.raiseToTypes(ctx, s, vs); err != nil {
		return err
	}
	for _, to := range []int64{weights.UnpackOpset, weights.CastOpset} {
		if !weights.OpsetBelow(s.Model, to) || !w.any(s, vs, func(p *plan) bool { return p.opset() == to }) {
			continue
		}
		var no *opset.Unsupported
		if err := weights.RaiseOpset(ctx, s, to); err != nil && !errors.As(err, &no) {
			return err
		}
	}
	return nil // weights of other opsets are skipped one by one
}

// raiseToTypes raises the opset to that of DequantizeLinear or of the data type if some weight is stored so. If that is
// not possible, none is.
func (w *Quantizer) raiseToTypes(ctx context.Context, s *pass.Step, vs []*ir.Value) error {
	to := w.opset()
	typed := func(p *plan) bool {
		e, blocks := p.encoding.(*spec.Blockwise)
		return p.form.Name == pass.Dequantize.Name || blocks && e.Layout.Bits < 8 && !e.Layout.BytePacked()
	}
	if !weights.OpsetBelow(s.Model, to) || !w.any(s, vs, typed) {
		return nil
	}
	// MatMulNBits needs no opset; other weights do without the types that it lacks.
	if w.Blocks.usesNBits() {
		w.withoutTypes(fmt.Sprintf("opset %d, --form %s", s.Model.Opset(""), NBitsForm))
		return nil
	}
	var no *opset.Unsupported
	err := weights.RaiseOpset(ctx, s, to)
	if errors.As(err, &no) {
		w.withoutTypes(fmt.Sprintf("opset %d, %s %s", no.From, no.Op, no.Node))
		return nil
	}
	return err
}

// withoutTypes uses neither DequantizeLinear nor data types of less than 8 bits, for the reason of an opset.
func (w *Quantizer) withoutTypes(reason string) {
	w.denseReason, w.packed, w.large = reason, true, false
}

// opset is the first one that supports the form of products, or the data type.
func (w *Quantizer) opset() int64 {
	if w.Blocks != nil {
		return blockTypes[w.Blocks.Bits].opset
	}
	return weights.DequantizeOpset
}

// any reports whether the plan of some weight satisfies is.
func (w *Quantizer) any(s *pass.Step, vs []*ir.Value, is func(*plan) bool) bool {
	return slices.ContainsFunc(vs, func(v *ir.Value) bool {
		p, reason := w.planAnyOpset(s, v)
		return reason.None() && is(p)
	})
}
