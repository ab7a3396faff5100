package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A rewrite puts operators whose gradients are known, and keep little, in the place of what exporters write. It
// reports whether it did. n is the node that the pattern is found by: the last one where there are several.
type rewrite struct {
	domain, typ string
	apply       func(t *Tape, n *ir.Node) bool
}

// rewrites is the list in the order of stages: the nodes of a later one are looked for when what the earlier ones made has
// types.
var rewrites = [][]rewrite{
	append(contribRewrites, rewrite{"", "GroupNormalization", groupNorm}, rewrite{"", "MaxPool", reluBehindPool}),
	{{"", "Div", layerNormOf}, {"", "Mul", geluOf}},
	{{"", "MatMul", attentionOf}},
	{{"", "MatMul", transposedOperands}},
}

// canonical applies the rewrites of the first stage that has any. It reports whether there was one: types are to be
// inferred again then.
func (t *Tape) canonical() bool {
	t.markNeeds()
	for _, stage := range rewrites {
		if t.rewrite(stage) {
			t.sweep()
			return true
		}
	}
	return false
}

func (t *Tape) rewrite(stage []rewrite) bool {
	done := false
	for _, n := range slices.Collect(t.Graph().Nodes()) {
		for _, r := range stage {
			if n.Graph() != nil && is(n, r.domain, r.typ) && r.apply(t, n) {
				done = true
			}
		}
	}
	return done
}

// is reports whether n, which may be nil, is an operator of that name; an empty domain is ONNX's own.
func is(n *ir.Node, domain string, types ...string) bool {
	if n == nil || !slices.Contains(types, n.Op.Type) {
		return false
	}
	return n.Op.Domain == domain || domain == "" && (ir.DefaultDomain(n.Op.Domain) || n.Op.Domain == newest)
}

// sweep removes nodes that nothing reads.
func (t *Tape) sweep() {
	for _, n := range slices.Backward(slices.Collect(t.Graph().Nodes())) {
		if !slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool { return v != nil && len(v.Uses()) > 0 }) {
			n.Remove()
		}
	}
}

// A builder adds nodes before one that they replace.
type inserter struct {
	*Tape
	at *ir.Node
}

func (b inserter) op(typ string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	return b.nodes(ir.OpID{Domain: newest, Type: typ}, 1, in, attrs)[0]
}

func (b inserter) nodes(id ir.OpID, outputs int, in []*ir.Value, attrs []*ir.Attr) []*ir.Value {
	g := b.Graph()
	n := g.NewNode(id, in, attrs...)
	n.Name = b.at.Name
	outs := make([]*ir.Value, outputs)
	for i := range outs {
		outs[i] = g.NewValue("c")
	}
	n.SetOutputs(slices.Clone(outs)...)
	g.InsertBefore(b.at, n)
	return outs
}

func (b inserter) reshape(v *ir.Value, shape ...int64) *ir.Value {
	return b.op("Reshape", []*ir.Value{v, b.Ints(shape...)}, ir.IntAttr("allowzero", 1))
}

// becomes lets v be read in the place of output i of n, under its name.
func becomes(n *ir.Node, i int, v *ir.Value) {
	if i >= len(n.Outputs) || n.Outputs[i] == nil {
		return
	}
	old, name := n.Outputs[i], n.Outputs[i].Name
	old.ReplaceUses(v) // which renames v if old is a graph output
	if v.Name != name {
		v.Name, old.Name = name, v.Name
	}
}
