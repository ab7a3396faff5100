package coupling

import "github.com/mcompress/mcompress/ir"

// A rule says what an operator does to the channels of its inputs: it joins those that fall
// together, names those of its outputs, and keeps what it cannot follow.
type rule func(*Plan, *ir.Node)

// rules are the operators that channels are followed through. Left out for a reason:
// LRN, GroupNormalization and CumSum mix channels; quantized operators have scales and zero
// points that may go by channel, and pruning stands before quantizing; If, Loop and Scan
// hand values to graphs that are looked at on their own.
var rules = table(map[string]rule{
	"Conv":                  conv,
	"ConvTranspose":         convTranspose,
	"Gemm":                  gemm,
	"MatMul":                matmul,
	"LSTM":                  recurrent,
	"GRU":                   recurrent,
	"RNN":                   recurrent,
	"BatchNormalization":    batchNormalization,
	"InstanceNormalization": instanceNormalization,
	"LayerNormalization":    normalized(-1),
	"RMSNormalization":      normalized(-1),
	"Softmax":               softmax,
	"LogSoftmax":            softmax,
	"Hardmax":               softmax,
	"Concat":                concat,
	"Split":                 split,
	"Slice":                 slice,
	"Gather":                gather,
	"Pad":                   pad,
	"Resize":                resize,
	"Upsample":              resize,
	"Transpose":             transpose,
	"Squeeze":               squeeze,
	"Unsqueeze":             unsqueeze,
	"Flatten":               flatten,
	"Reshape":               reshape,
	"Shape":                 shape,
}, []string{
	// one element of the output for each of the input
	"Abs", "Cast", "Ceil", "Celu", "Dropout", "Elu", "Erf", "Exp", "Floor",
	"Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Mish", "Neg",
	"Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
	"Softplus", "Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu",
	"com.microsoft.Gelu", "com.microsoft.FastGelu", "com.microsoft.QuickGelu",
	// … and of its other inputs, broadcast
	"Add", "And", "Clip", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
	"LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow",
	"Sub", "Sum", "Where", "Xor", "com.microsoft.BiasGelu",
}, []string{
	"AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool",
}, []string{
	"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
	"ReduceSumSquare",
})

func table(rs map[string]rule, pointwise, pools, reductions []string) map[string]rule {
	for _, op := range pointwise {
		rs[op] = elementwise
	}
	for _, op := range pools {
		rs[op] = pool
	}
	for _, op := range reductions {
		rs[op] = reduce
	}
	return rs
}
