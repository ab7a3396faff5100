package weightonly

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rewrite"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// emit stores the common weight of g's plans and rewrites their consumers.
func (w *Quantizer) emit(step *pass.Step, g []*plan) rewrite.Stored {
	st := rewrite.Store(g[0].scope(), g[0].Base, g[0].encoding)
	r := rewrite.New(step)
	var dense *ir.Value
	for _, p := range g {
		p.note(weights.RemoveFromInputs(p.Base))
		switch p.form.Name {
		case pass.NBits.Name, pass.WideNBits.Name:
			for _, s := range p.Consumers {
				if s.Side == weights.Lookup {
					r.Gather(s, st)
					continue
				}
				r.MatMulNBits(s, st.(*rewrite.Blockwise), p.form == pass.WideNBits, w.Blocks.Form.AccuracyLevel)
			}
			continue
		case pass.CastMul.Name:
		default:
			rewriteConsumers(r, p, st)
			continue
		}
		// Equal weights share the folded one, too.
		if dense == nil {
			dense = r.CastMul(st)
		}
		p.Base.ReplaceUses(dense)
		p.Base.Drop()
	}
	return st
}

// rewriteConsumers rewrites lookups and products.
func rewriteConsumers(r *rewrite.Rewriter, p *plan, st rewrite.Stored) {
	for _, s := range p.Consumers {
		if s.Side == weights.Lookup {
			r.Gather(s, st)
			continue
		}
		if p.form.Name == pass.CastProduct.Name {
			r.CastProduct(s, st.(*rewrite.PerChannel))
			continue
		}
		r.DequantizeLinear(s, st)
	}
}

// row is the ledger row of p, whose stored weight is first's.
func (w *Quantizer) row(first, p *plan, st rewrite.Stored) pass.Row {
	r := pass.Row{Form: p.form, After: st.Parts(), Restore: st.Restore, Bound: st.Bound(), Notes: p.notes,
		Consumers: pass.Labels(p.consumers)}
	if p != first {
		r.SharedWith = first.Base.Name
	}
	return r
}

func (w *Quantizer) rewrite(ctx context.Context, s *pass.Step, plans []*plan) error {
	groups, err := groupPlans(ctx, s, plans)
	if err != nil {
		return err
	}
	for _, g := range groups {
		w.foldShared(g)
		st := w.emit(s, g)
		for _, p := range g {
			s.Ledger.Changed(p.Base, p.Base.Const, p.consumers, w.row(g[0], p, st))
		}
	}
	return nil
}

// foldShared folds a group of plans in which several DequantizeLinear would read the same quantized weight or scales:
// ONNX Runtime fuses none of them into MatMulNBits, but would dequantize in every run. Folded, they are one dense
// weight.
func (w *Quantizer) foldShared(g []*plan) {
	if len(g) == 1 || g[0].form.Name != pass.Dequantize.Name {
		return
	}
	for i, p := range g {
		consumers, us := p.consumers, p.uses
		g[i] = w.foldedPlan(p.Base, us)
		g[i].consumers, g[i].uses = consumers, us
	}
}
