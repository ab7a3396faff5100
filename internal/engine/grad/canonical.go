package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A rewrite replaces patterns of exporters by operators whose gradients are supported and store little. It reports
// whether it replaced something. n is the node that identifies the pattern: the last one of several.
type rewrite struct {
	domain, typ string
	apply       func(t *Tape, n *ir.Node) bool
}

// rewrites is the list of stages: the patterns of a stage are searched when the results of earlier stages have types.
var rewrites = [][]rewrite{
	append(slices.Clip(requiredRewrites[0]), rewrite{"", "MaxPool", reluAfterPool}),
	{{"", "Div", layerNormOf}, {"", "Mul", geluOf}, {"", "Mul", activationOf}, {"", "Div", activationOf}},
	// After LayerNormalization: its division of the centered input by a root would match as RMSNormalization.
	{{"", "Div", rmsNormOf}, {"", "Mul", rmsNormOf}},
	{{"", "MatMul", attentionOf}},
	// After attention, whose pattern has the Transpose nodes that this stage fuses away.
	{{"", "MatMul", transposedOperands}},
}

// requiredRewrites is the only stage of rewrites without operator fusion: of operators without a gradient of their own.
var requiredRewrites = [][]rewrite{append(slices.Clip(contribRewrites), rewrite{"", "GroupNormalization", groupNorm})}

// canonical applies the first stage with a match. It reports whether there was one: types are inferred again then.
func (t *Tape) canonical() bool {
	t.markNeeds()
	stages := rewrites
	if t.plain {
		stages = requiredRewrites
	}
	for _, stage := range stages {
		if t.rewrite(stage) {
			t.sweep()
			return true
		}
	}
	t.sweep() // nodes of rewrites that did not match in the end
	return false
}

func (t *Tape) rewrite(stage []rewrite) bool {
	done := false
	for _, n := range slices.Collect(t.Graph().Nodes()) {
		for _, r := range stage {
			// An earlier match of the stage may have removed n.
			if n.Graph() != nil && is(n, r.domain, r.typ) && r.apply(t, n) {
				done = true
			}
		}
	}
	return done
}

// is reports whether n, which may be nil, is an operator of one of these types; an empty domain is ONNX's own.
func is(n *ir.Node, domain string, types ...string) bool {
	if n == nil || !slices.Contains(types, n.Op.Type) {
		return false
	}
	return n.Op.Domain == domain || domain == "" && (ir.DefaultDomain(n.Op.Domain) || n.Op.Domain == newest)
}

// sweep removes nodes without consumers.
func (t *Tape) sweep() {
	for _, n := range slices.Backward(slices.Collect(t.Graph().Nodes())) {
		if !slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool { return v != nil && len(v.Uses()) > 0 }) {
			n.Remove()
		}
	}
}

// An inserter inserts nodes before the node that they replace.
type inserter struct {
	*Builder
	at *ir.Node
}

func (b inserter) op(typ string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	return b.nodes(ir.OpID{Domain: newest, Type: typ}, 1, in, attrs)[0]
}

func (b inserter) nodes(id ir.OpID, outputs int, in []*ir.Value, attrs []*ir.Attr) []*ir.Value {
	g := b.Graph()
	n := g.NewNode(id, in, attrs...)
	// The name has the module path of the replaced node: patterns of blocks and the log by layer find the new ones
	// by it.
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

// replaceOutput replaces output i of n by v, which is renamed to it.
func replaceOutput(n *ir.Node, i int, v *ir.Value) {
	if i >= len(n.Outputs) || n.Outputs[i] == nil {
		return
	}
	old, name := n.Outputs[i], n.Outputs[i].Name
	old.ReplaceUses(v) // which renames v if old is a graph output
	if v.Name != name {
		v.Name, old.Name = name, v.Name
	}
}
