package quantize

import (
	"bytes"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// emit stores the weight that g's plans share and gives its readers what they need.
func (w *weightOnly) emit(c *pass.Context, g []*plan) *stored {
	st := store(g[0].scope(), g[0].base, g[0].cd)
	r := newRewriter(c)
	var dense *ir.Value
	for _, p := range g {
		p.note(noInput(p.base))
		switch p.form.Name {
		case pass.NBits.Name:
			for _, s := range p.sites {
				r.bits(s, st, w.blocks.form.level)
			}
			continue
		case pass.CastMul.Name:
		default:
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
	if st.b != nil {
		return r.castBlocks(st)
	}
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

// sites rewrites lookups, and the product if there is one.
func (r *rewriter) sites(p *plan, st *stored) {
	for _, s := range p.sites {
		if s.side == gather {
			r.gatherRows(s, st)
			continue
		}
		r.linear(s, st)
	}
}

// linear gives a product the weight behind DequantizeLinear. ONNX Runtime makes
// MatMulNBits of the pair, unless it has made Gemm and an activation, or MatMul, Add and
// an activation, one node before; it would dequantize in every run then. So Gemm becomes
// MatMul and Sum, and an Add that follows becomes Sum.
func (r *rewriter) linear(s *site, st *stored) {
	g, at, x := s.node.Graph(), s.node, s.act()
	w := r.dequantized(st, s.transposed)
	if !at.Op.Is("Gemm") {
		old := at.Input(s.use.Index)
		at.SetInput(s.use.Index, w)
		old.Drop()
		sumAfter(at)
		return
	}
	if s.flipped() {
		x = g.Insert(at, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", 1, 0))
	}
	y := g.Insert(at, "MatMul", []*ir.Value{x, w})
	if alpha := at.Float("alpha", 1); alpha != 1 {
		y = g.Insert(at, "Mul", []*ir.Value{y, r.number(s, alpha)})
	}
	r.replace(s, r.bias(s, y, "Sum"))
}

// sumAfter makes a Sum of the Add that reads a product of matrices.
func sumAfter(n *ir.Node) {
	rank, ok := opset.Rank(n.Input(0))
	uses := n.Outputs[0].Uses()
	if ok && rank == 2 && len(uses) == 1 && uses[0].Node != nil && uses[0].Node.Op.Is("Add") {
		uses[0].Node.Op.Type = "Sum"
	}
}

// dequantized is the float weight in one orientation, made at the head of the graph that
// holds the codes.
func (r *rewriter) dequantized(st *stored, transposed bool) *ir.Value {
	if st.b != nil {
		return r.dequantizedBlocks(st)
	}
	in := []*ir.Value{r.oriented(st, transposed), r.placed(st, st.scale, false), r.zeros(st)}
	if in[2] == nil {
		in = in[:2]
	}
	var attrs []*ir.Attr
	if st.axis >= 0 {
		axis := int64(st.axis)
		if transposed {
			axis = 1 - axis
		}
		attrs = append(attrs, ir.IntAttr("axis", axis))
	}
	return st.home.Insert(behind(st.home, in), "DequantizeLinear", in, attrs...)
}

// behind is the first node of g that has everything in vs made in front of it.
func behind(g *ir.Graph, vs []*ir.Value) *ir.Node {
	makers := map[*ir.Node]bool{}
	for _, v := range vs {
		if n := v.Producer(); n != nil && n.Graph() == g {
			makers[n] = true
		}
	}
	for n := range g.Nodes() {
		if len(makers) == 0 {
			return n
		}
		delete(makers, n)
	}
	return nil
}

// zeros is the zero points in the shape that DequantizeLinear wants, that of the scales.
// They are stated, and not shared with other weights, although zeros could be left out:
// where ONNX Runtime turns int8 weights into uint8 (session.x64quantprecision, for CPUs
// without VNNI) it takes no others, and fails when two weights share them.
func (r *rewriter) zeros(st *stored) *ir.Value {
	if st.zero != nil || st.axis < 0 {
		return r.flat(st, r.zero(st))
	}
	n := st.g.scales()
	codes := ir.Spec{DType: st.s.dtype(), Shape: []int64{n}}
	st.stated = st.home.AddConst("z", &ir.Tensor{Spec: codes, Source: ir.Mem(bytes.Repeat([]byte{byte(st.s.zero())}, int(n)))})
	return st.stated
}

// row is the ledger's line for p, whose weight first's codes stand for.
func (w *weightOnly) row(first, p *plan, st *stored) pass.Row {
	r := pass.Row{Form: p.form, After: st.parts(), Restore: st.restore, Reason: strings.Join(p.notes, "; "), Consumers: pass.Labels(p.readers)}
	if p != first {
		r.SharedWith = first.base.Name
	}
	return r
}
