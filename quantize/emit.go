package quantize

import (
	"bytes"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// emit stores the weight that g's plans share and gives its readers what they need.
func (w *weightOnly) emit(c *pass.Context, g []*plan) *stored {
	st := store(g[0].scope(), g[0].base, g[0].cd)
	r := newRewriter(c)
	var dense *ir.Value
	for _, p := range g {
		if p.base.IsInput() {
			p.base.Graph().RemoveInput(p.base)
			p.note = "it was a graph input too; callers cannot replace it any more"
		}
		if p.form.Name != pass.CastMul.Name {
			r.sites(p, st)
			continue
		}
		if dense == nil {
			dense = r.castMul(st)
		}
		p.base.ReplaceUses(dense)
		p.base.Drop()
	}
	return st
}

// castMul is (codes - zero) · scale in nodes that runtimes fold.
func (r *rewriter) castMul(st *stored) *ir.Value {
	g, at := st.home, st.home.First()
	x := r.cast(g, at, st.codes, ir.Float)
	if z := r.zero(st); z != nil {
		x = g.Insert(at, "Sub", []*ir.Value{x, r.cast(g, at, z, ir.Float)})
	}
	x = g.Insert(at, "Mul", []*ir.Value{x, st.scale})
	if st.t.DType != ir.Float {
		x = r.cast(g, at, x, st.t.DType)
	}
	return x
}

// sites rewrites lookups and hands dequantized matrices to products, one for each
// orientation that they read.
func (r *rewriter) sites(p *plan, st *stored) {
	for _, s := range p.sites {
		if s.side == gather {
			r.gatherRows(s, st)
			continue
		}
		old := s.node.Input(s.use.Index)
		s.node.SetInput(s.use.Index, r.dequantized(st, s.transposed))
		if s.node.Attr("transB") != nil {
			s.node.RemoveAttr("transB") // the operand is K × N now
		}
		old.Drop()
	}
}

func (r *rewriter) dequantized(st *stored, transposed bool) *ir.Value {
	k := key{st.home, st.codes}
	if transposed {
		k.v = st.scale
	}
	if r.wide[k] != nil {
		return r.wide[k]
	}
	codes := r.oriented(st, transposed)
	in := []*ir.Value{codes, r.placed(st, st.scale, false), r.zeros(st)}
	var attrs []*ir.Attr
	if st.axis >= 0 {
		axis := int64(st.axis)
		if transposed {
			axis = 1 - axis
		}
		attrs = append(attrs, ir.IntAttr("axis", axis))
	}
	if in[2] == nil {
		in = in[:2]
	}
	r.wide[k] = st.home.Insert(st.home.First(), "DequantizeLinear", in, attrs...)
	return r.wide[k]
}

// zeros is the zero points in the shape that DequantizeLinear wants, that of the scales.
func (r *rewriter) zeros(st *stored) *ir.Value {
	if st.zero != nil || st.s.zero() == 0 || st.axis < 0 {
		return r.flat(st, r.zero(st))
	}
	n := st.g.scales()
	return r.c.Const(st.home, st.s.dtype(), []int64{n}, bytes.Repeat([]byte{byte(st.s.zero())}, int(n)))
}

// row is the ledger's line for p, whose weight first's codes stand for.
func (w *weightOnly) row(first, p *plan, st *stored) pass.Row {
	r := pass.Row{Form: p.form, After: st.parts(), Restore: st.restore, Reason: p.note, Consumers: pass.Labels(p.readers)}
	if p != first {
		r.SharedWith = first.base.Name
	}
	r.After = slices.Clone(r.After)
	return r
}
