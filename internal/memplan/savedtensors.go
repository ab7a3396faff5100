package memplan

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// savedTensors is the tensors that the backward pass of an operator reads.
type savedTensors struct {
	input    bool // the first input
	operands bool // inputs whose other operands have a gradient: factors of products
	all      bool // every input that is a float
	indices  bool // integer inputs after the first: indices, conditions
	output   bool

	inPlace    bool // the output may reuse the memory of an input
	view       bool // the output is the first input in another shape
	extraBytes func(n *ir.Node, x, y ir.Spec) int64
}

// savedTensorRules are by operator. Other operators save inputs and outputs.
func savedTensorRules() map[string]savedTensors {
	all := map[string]savedTensors{
		"Relu":      {output: true, inPlace: true},
		"LeakyRelu": {output: true, inPlace: true},
		"Dropout":   {inPlace: true},                                                         // its mask is regenerated from the seed
		"MaxPool":   {extraBytes: func(_ *ir.Node, _, y ir.Spec) int64 { return y.Elems() }}, // the index in the window, a byte

		// Mean and variance, in float32.
		"BatchNormalization":    {input: true, extraBytes: func(_ *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 1, 2) }},
		"InstanceNormalization": {input: true, extraBytes: func(_ *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 0, 2) }},
		"GroupNormalization":    {input: true, extraBytes: func(n *ir.Node, x, _ ir.Spec) int64 { return 8 * along(x, 0, 1) * n.Int("num_groups", 1) }},
		"LayerNormalization":    {input: true, extraBytes: func(n *ir.Node, x, _ ir.Spec) int64 { return 8 * rows(n, x) }},
		"RMSNormalization":      {input: true, extraBytes: func(n *ir.Node, x, _ ir.Spec) int64 { return 4 * rows(n, x) }},

		// By blocks: queries, keys, values, the result and a number for each row of scores, as in FlashAttention
		// (Dao et al., 2022, arXiv:2205.14135, algorithm 4); scores are recomputed.
		"Attention":          {all: true, output: true, extraBytes: scores},
		"MultiHeadAttention": {all: true, output: true, extraBytes: scores},

		"Gather": {indices: true}, "GatherElements": {indices: true}, "GatherND": {indices: true}, "ScatterND": {indices: true}, "ScatterElements": {indices: true},
		"Where": {indices: true}, "ReduceMax": {input: true, output: true}, "ReduceMin": {input: true, output: true},
		"GlobalMaxPool": {extraBytes: func(_ *ir.Node, _, y ir.Spec) int64 { return 4 * y.Elems() }},
		"LSTM":          {input: true, output: true, extraBytes: gates(5)}, // four gates and the cell of each step
		"GRU":           {input: true, output: true, extraBytes: gates(4)}, // three, and the factor of the reset gate
		"RNN":           {input: true, output: true},
	}
	for s, names := range families() {
		for _, name := range names {
			all[name] = s.saving()
		}
	}
	return all
}

// A family is operators with the same saved tensors.
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

func (f family) saving() savedTensors {
	return map[family]savedTensors{
		"product": {operands: true}, "output": {output: true}, "input": {input: true}, "over": {inPlace: true}, "nothing": {},
	}[f]
}

// rulesOf is the rule of n; only ONNX's own domain and com.microsoft have some.
func rulesOf(rules map[string]savedTensors, n *ir.Node) savedTensors {
	if operator.Of(n).Move == operator.View {
		return savedTensors{view: true}
	}
	rule, known := rules[n.Op.Type]
	if !known || !ir.DefaultDomain(n.Op.Domain) && n.Op.Domain != "com.microsoft" {
		return savedTensors{all: true, output: true}
	}
	return rule
}

// along is the product of x's axes from, inclusive, to to, exclusive.
func along(x ir.Spec, from, to int) int64 {
	n := int64(1)
	for _, d := range x.Shape[min(from, len(x.Shape)):min(to, len(x.Shape))] {
		n *= d
	}
	return n
}

// rows are the number of vectors that n normalizes, from its axis on.
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

// gates are count floats for each element of the outputs of all steps.
func gates(count int64) func(n *ir.Node, x, y ir.Spec) int64 {
	return func(n *ir.Node, x, y ir.Spec) int64 {
		directions := int64(1)
		if d := n.Attr("direction"); d != nil && d.S == "bidirectional" {
			directions = 2
		}
		return count * 4 * along(x, 0, 2) * directions * n.Int("hidden_size", 0)
	}
}
