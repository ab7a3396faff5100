package memplan

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A saving is what the backward pass of an operator needs of the forward pass.
type saving struct {
	input    bool // the first input
	operands bool // inputs whose other operands have a gradient: factors of products
	all      bool // every input that is a float
	extra    bool // inputs behind the first that are no floats: indices, conditions
	output   bool

	over   bool // the result may take the place of an input
	view   bool // the result is the first input in another shape
	beside func(n *ir.Node, x, y ir.Spec) int64
}

// savings are by operator. Those that are not listed save inputs and outputs.
func savings() map[string]saving {
	all := map[string]saving{
		"Relu":      {output: true, over: true},
		"LeakyRelu": {output: true, over: true},
		"Dropout":   {over: true},                                                        // its mask is drawn again from the seed
		"MaxPool":   {beside: func(_ *ir.Node, _, y ir.Spec) int64 { return y.Elems() }}, // the place in the window, a byte

		// Mean and variance, in float32.
		"BatchNormalization":    {input: true, beside: func(_ *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 1, 2) }},
		"InstanceNormalization": {input: true, beside: func(_ *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 0, 2) }},
		"GroupNormalization":    {input: true, beside: func(n *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 0, 1) * n.Int("num_groups", 1) }},
		"LayerNormalization":    {input: true, beside: func(n *ir.Node, x, _ ir.Spec) int64 { return 8 * rows(n, x) }},
		"RMSNormalization":      {input: true, beside: func(n *ir.Node, x, _ ir.Spec) int64 { return 4 * rows(n, x) }},

		// By blocks: queries, keys, values, the result and a number for each row of scores, as in FlashAttention
		// (Dao et al., 2022, arXiv:2205.14135, algorithm 4); scores are computed again.
		"Attention":          {all: true, output: true, beside: scores},
		"MultiHeadAttention": {all: true, output: true, beside: scores},

		"Gather": {extra: true}, "GatherElements": {extra: true}, "GatherND": {extra: true}, "ScatterND": {extra: true}, "ScatterElements": {extra: true},
		"Where": {extra: true}, "ReduceMax": {input: true, output: true}, "ReduceMin": {input: true, output: true},
		"GlobalMaxPool": {beside: func(_ *ir.Node, _, y ir.Spec) int64 { return 4 * y.Elems() }},
		"LSTM":          {input: true, output: true, beside: gates(5)}, // four gates and the cell of each step
		"GRU":           {input: true, output: true, beside: gates(4)}, // three, and what the reset gate is multiplied by
		"RNN":           {input: true, output: true},
	}
	for s, names := range families() {
		for _, name := range names {
			all[name] = s.saving()
		}
	}
	return all
}

// A family is operators that save alike.
type family string

func families() map[family][]string {
	return map[family][]string{
		"product": {"Conv", "ConvTranspose", "MatMul", "Gemm", "Mul", "Div", "Einsum"},
		"output":  {"Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Exp", "Sqrt", "Reciprocal", "Elu", "Softplus"},
		"input": {
			"Gelu", "Erf", "Log", "Abs", "Pow", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Mish",
			"HardSwish", "HardSigmoid", "Swish", "Softsign", "Selu", "Celu", "Clip", "Shrink", "ThresholdedRelu", "PRelu", "LRN", "ReduceL2",
			"ReduceSumSquare", "ReduceLogSumExp", "ReduceProd", "ReduceL1", "ReduceLogSum", "LpNormalization", "MeanVarianceNormalization",
		},
		"over": {"Add", "Sub", "Neg"},
		"nothing": {
			"Concat", "Split", "Slice", "Transpose", "Pad", "Expand", "Tile", "Cast", "CastLike", "ReduceSum", "ReduceMean", "AveragePool",
			"GlobalAveragePool", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "Sum", "Mean", "Trilu", "CumSum", "Floor", "Ceil", "Round",
			"Sign", "ReverseSequence",
		},
	}
}

func (f family) saving() saving {
	return map[family]saving{
		"product": {operands: true}, "output": {output: true}, "input": {input: true}, "over": {over: true}, "nothing": {},
	}[f]
}

// saved is the rule for n. Domains but ONNX's own and com.microsoft have none.
func saved(rules map[string]saving, n *ir.Node) saving {
	if operator.Of(n).Move == operator.View {
		return saving{view: true}
	}
	rule, known := rules[n.Op.Type]
	if !known || !ir.DefaultDomain(n.Op.Domain) && n.Op.Domain != "com.microsoft" {
		return saving{all: true, output: true}
	}
	return rule
}

// along is the product of x's axes from one to in front of another.
func along(x ir.Spec, from, to int) int64 {
	n := int64(1)
	for _, d := range x.Shape[min(from, len(x.Shape)):min(to, len(x.Shape))] {
		n *= d
	}
	return n
}

// rows are the stretches that n normalizes, which begin at its axis.
func rows(n *ir.Node, x ir.Spec) int64 {
	axis := n.Int("axis", -1)
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	return along(x, 0, int(max(0, axis)))
}

// scores are the rows of an attention's scores, a float32 each: one for each query of each head.
func scores(n *ir.Node, x, _ ir.Spec) int64 {
	if len(x.Shape) == 4 {
		return 4 * along(x, 0, 3)
	}
	return 4 * along(x, 0, 2) * max(n.Int("num_heads", 0), n.Int("q_num_heads", 1))
}

// gates are so many floats for each element of the results of all steps.
func gates(count int64) func(n *ir.Node, x, y ir.Spec) int64 {
	return func(n *ir.Node, x, y ir.Spec) int64 {
		directions := int64(1)
		if d := n.Attr("direction"); d != nil && d.S == "bidirectional" {
			directions = 2
		}
		return count * 4 * along(x, 0, 2) * directions * n.Int("hidden_size", 0)
	}
}
