package dynamic

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/biascorrection"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// DynamicOpset is the first one that has DynamicQuantizeLinear.
const DynamicOpset = 11

// A Quantizer is the method with its options.
type Quantizer struct {
	Spec       spec.QuantSpec
	buffers    *spec.BufferPool
	Embeddings bool
	Bias       biascorrection.Correction
	Data       calibrate.Data
}

// Run implements pass.Options.
func (d *Quantizer) Run(ctx context.Context, s *pass.Step) error {
	d.buffers = spec.NewBufferPool()
	// Chosen before the opset is raised: a model without a weight to quantize stays as it is.
	taken, err := d.choose(ctx, s)
	if err != nil || len(taken) == 0 {
		return err
	}
	if weights.OpsetBelow(s.Model, DynamicOpset) {
		var no *opset.Unsupported
		err := weights.RaiseOpset(ctx, s, DynamicOpset)
		if errors.As(err, &no) {
			for _, w := range taken {
				s.Ledger.Skip(w.Base, w.Nodes(), weights.NotRaised(no))
			}
			return nil
		}
		if err != nil {
			return err
		}
		// Raising may have replaced nodes of consumers.
		if taken, err = d.choose(ctx, s); err != nil {
			return err
		}
	}
	return d.rewrite(ctx, s, taken)
}

// rewrite stores the weights and replaces their consumers in the order of nodes, so that shared nodes are before the
// first product.
func (d *Quantizer) rewrite(ctx context.Context, step *pass.Step, ws []*weights.Weight) error {
	groups, err := d.mergeEqual(ctx, step, ws)
	if err != nil {
		return err
	}
	// Before weights are replaced: the errors are those of the original weights, and layers are found by them.
	if err := d.Bias.Apply(ctx, step, d.encodings(groups)); err != nil {
		return err
	}
	at := map[*ir.Node]*rewrite.PerChannel{}
	by := map[*ir.Node]*weights.Consumer{}
	for _, w := range groups {
		cd, _ := d.encoding(w.Weight)
		st := rewrite.StorePerChannel(w.Base.Graph(), w.Base, cd)
		for _, s := range w.Consumers {
			at[s.Node], by[s.Node] = st, s
		}
		for _, m := range w.members {
			step.Ledger.Changed(m.Base, m.Base.Const, m.Nodes(), d.row(w, m, st))
		}
	}
	r := rewrite.New(step)
	// Collected, as products insert nodes.
	for _, n := range slices.Collect(step.Model.Nodes()) {
		s, st := by[n], at[n]
		switch {
		case s == nil:
		case s.Side == weights.Lookup:
			r.Gather(s, st)
		default:
			r.MatMulInteger(s, st)
		}
	}
	return nil
}

// encodings are those of all weights.
func (d *Quantizer) encodings(gs []*group) map[*ir.Value]spec.Encoding {
	all := map[*ir.Value]spec.Encoding{}
	for _, g := range gs {
		cd, _ := d.encoding(g.Weight)
		for _, m := range g.members {
			all[m.Base] = cd
		}
	}
	return all
}

// A group is weights of equal content, which are stored once.
type group struct {
	*weights.Weight
	members []*weights.Weight
}

func (d *Quantizer) mergeEqual(ctx context.Context, s *pass.Step, ws []*weights.Weight) ([]*group, error) {
	bases := make([]*ir.Value, len(ws))
	for i, w := range ws {
		bases[i] = w.Base
	}
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, bases)
	if err != nil {
		return nil, err
	}
	var groups []*group
	by := map[*ir.Value]*group{}
	for _, w := range ws {
		if g := by[first[w.Base]]; g != nil {
			both := &weights.Weight{Base: g.Base, Consumers: slices.Concat(g.Consumers, w.Consumers)}
			// One weight for both only if all their products can read it in one orientation and type.
			if _, reason := d.encoding(both); reason.None() {
				g.Weight, g.members = both, append(g.members, w)
				continue
			}
		}
		g := &group{Weight: w, members: []*weights.Weight{w}}
		if by[w.Base] == nil {
			by[w.Base] = g
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// row is the ledger row of m, one of the weights that st replaces.
func (d *Quantizer) row(g *group, m *weights.Weight, st *rewrite.PerChannel) pass.Row {
	r := pass.Row{Form: pass.MatMulInteger, After: st.Parts(), Restore: st.Restore, Bound: st.Bound()}
	// Tied weights have the form of their first consumer.
	if m.Consumers[0].Side == weights.Lookup {
		r.Form = pass.GatherQuantized
	}
	if m.Base != g.Base {
		r.SharedWith = g.Base.Name
	}
	// Not as the options say, for the reasons of RequiresUint8 and of the axes of zero points.
	if st.Spec.Symmetric != d.Spec.Symmetric {
		r.Notes = append(r.Notes, pass.Reason{Code: pass.Symmetric})
	}
	if st.Spec.Unsigned != d.Spec.Unsigned {
		r.Notes = append(r.Notes, pass.Reason{Code: pass.Unsigned})
	}
	r.Notes = append(r.Notes, pass.Notes(weights.RemoveFromInputs(m.Base))...)
	return r
}

// choose decides which weights are quantized; the others get ledger rows.
func (d *Quantizer) choose(ctx context.Context, s *pass.Step) ([]*weights.Weight, error) {
	var taken []*weights.Weight
	all := weights.Find(s, d.Embeddings)
	skipOthers(s, all)
	for _, w := range all {
		d.mirror(w)
		if reason := d.refuse(s, w); !reason.None() {
			s.Ledger.Skip(w.Base, w.Nodes(), reason)
			continue
		}
		taken = append(taken, w)
	}
	return spec.Precheck(ctx, s, taken, func(w *weights.Weight) (*ir.Value, spec.Encoding) {
		cd, _ := d.encoding(w)
		return w.Base, cd
	})
}

// mirror mirrors consumers with the weight on the left if it is asymmetric, and if the activation is a vector: ONNX
// Runtime fuses a bias as if it were along B's columns.
func (d *Quantizer) mirror(w *weights.Weight) {
	for _, s := range w.Consumers {
		if s.Side != weights.Left || len(s.Shape) != 2 {
			continue
		}
		rank, ok := opset.Rank(s.Activation())
		if ok && rank == 1 || !d.Spec.Symmetric && !d.Spec.PerTensor {
			s.Mirror()
		}
	}
}

// refuse returns the reason why w is skipped.
func (d *Quantizer) refuse(step *pass.Step, w *weights.Weight) pass.Reason {
	if step.Select.Excludes(w.Base, w.Nodes()) {
		return pass.Reason{Code: pass.NotSelected}
	}
	if w.Base.Ambiguous {
		return pass.Reason{Code: pass.Ambiguous}
	}
	// Stored for it as well, in float, the weight would make the file larger.
	if !w.OtherConsumer.None() {
		return w.OtherConsumer
	}
	if t := w.Unsupported(); !t.None() {
		return t
	}
	for _, s := range w.Consumers {
		if r := s.ResolveActivationRank(); !r.None() {
			return r
		}
	}
	cd, reason := d.encoding(w)
	if !reason.None() {
		return reason
	}
	if before, after := w.Base.Const.Bytes(),
		cd.Bytes()+rewrite.GraphBytes(rewrite.IntegerProductBytes, len(w.Consumers), w.Base); after >= before {
		return pass.Reason{Code: pass.Larger, Detail: fmt.Sprintf("%d bytes → %d bytes", before, after)}
	}
	return pass.Reason{}
}

func (d *Quantizer) encoding(w *weights.Weight) (*spec.PerChannel, pass.Reason) {
	return rewrite.PerChannelEncoding(w, d.Spec, d.buffers)
}
