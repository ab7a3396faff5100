package grad

import "github.com/mcompress/mcompress/ir"

// contribRewrites rewrite ONNX Runtime's operators to ONNX's own, and attention of both.
var contribRewrites = []rewrite{
	{microsoft, "Gelu", biasRewrite("none")},
	{microsoft, "BiasGelu", biasRewrite("none")},
	{microsoft, "FastGelu", biasRewrite("tanh")},
	{microsoft, "FusedGemm", fusedGemm},
	{microsoft, "SkipLayerNormalization", skipNorm("LayerNormalization", 2, 3, 4)},
	{microsoft, "SkipSimplifiedLayerNormalization", skipNorm("RMSNormalization", 2, 0, 3)},
	{microsoft, "EmbedLayerNormalization", embedNorm},
	{microsoft, "Attention", selfAttention},
	{microsoft, "MultiHeadAttention", crossAttention},
	{microsoft, "GroupQueryAttention", groupQueryAttention},
	{"", "Attention", headAttention},
}

// biasRewrite rewrites to Gelu of the sum with input 1.
func biasRewrite(approximate string) func(*Tape, *ir.Node) bool {
	return func(t *Tape, n *ir.Node) bool {
		b, x := inserter{t.Builder, n}, n.Input(0)
		if n.Input(1) != nil {
			x = b.op("Add", []*ir.Value{x, n.Input(1)})
		}
		replaceOutput(n, 0, b.op("Gelu", []*ir.Value{x}, ir.StringAttr("approximate", approximate)))
		return true
	}
}

// fusedGemm rewrites to Gemm and its activation.
func fusedGemm(t *Tape, n *ir.Node) bool {
	typ := text(n, "activation", "")
	// In newer opsets the bounds of Clip are inputs: FusedGemm has them as attributes only.
	if lookup(ir.OpID{Type: typ}) == nil || typ == "Clip" {
		return false
	}
	b := inserter{t.Builder, n}
	var own, attrs []*ir.Attr
	for _, a := range n.Attrs {
		switch a.Name {
		case "activation":
		case "activation_alpha", "activation_beta":
			attrs = append(attrs, ir.FloatAttr(a.Name[len("activation_"):], a.F))
		default:
			own = append(own, a)
		}
	}
	replaceOutput(n, 0, b.op(typ, []*ir.Value{b.op("Gemm", n.Inputs(), own...)}, attrs...))
	return true
}

// skipNorm rewrites to the normalization of the sum of inputs 0, 1 and bias, which is output 3.
func skipNorm(typ string, gamma, beta, bias int) func(*Tape, *ir.Node) bool {
	return func(t *Tape, n *ir.Node) bool {
		if isOutputUsed(n, 1) || isOutputUsed(n, 2) {
			return false
		}
		b := inserter{t.Builder, n}
		sum := b.op("Add", []*ir.Value{n.Input(0), n.Input(1)})
		if n.Input(bias) != nil {
			sum = b.op("Add", []*ir.Value{sum, n.Input(bias)})
		}
		in := []*ir.Value{sum, n.Input(gamma)}
		if beta > 0 {
			in = append(in, n.Input(beta))
		}
		replaceOutput(n, 0, b.op(typ, in, ir.IntAttr("axis", -1), ir.FloatAttr("epsilon", n.Float("epsilon", 1e-12))))
		replaceOutput(n, 3, sum)
		return true
	}
}

// embedNorm rewrites to the normalization of the sum of rows of three tables. The node is kept for its number of words,
// if that is consumed.
func embedNorm(t *Tape, n *ir.Node) bool {
	if !isOutputUsed(n, 0) {
		return false
	}
	b := inserter{t.Builder, n}
	sum := b.op("Gather", []*ir.Value{n.Input(2), n.Input(0)})
	positions := n.Input(8)
	if positions == nil {
		positions = t.Ints(progression(sliceRange{0, 1, t.Shape(n.Input(0))[1]})...)
	}
	sum = b.op("Add", []*ir.Value{sum, b.op("Gather", []*ir.Value{n.Input(3), positions})})
	if n.Input(1) != nil && n.Input(4) != nil {
		sum = b.op("Add", []*ir.Value{sum, b.op("Gather", []*ir.Value{n.Input(4), n.Input(1)})})
	}
	in := []*ir.Value{sum, n.Input(5), n.Input(6)}
	replaceOutput(n, 0, b.op("LayerNormalization", in, ir.IntAttr("axis", -1),
		ir.FloatAttr("epsilon", n.Float("epsilon", 1e-12))))
	replaceOutput(n, 2, sum)
	return true
}

// isOutputUsed reports whether output i of n has a consumer.
func isOutputUsed(n *ir.Node, i int) bool {
	return i < len(n.Outputs) && n.Outputs[i] != nil && len(n.Outputs[i].Uses()) > 0
}
