package operator

import "github.com/mcompress/mcompress/ir"

// Saves are the tensors that the forward pass of an operator stores for its backward pass, besides small ones such as
// means.
type Saves uint16

// The saved tensors; 0 is unknown.
const (
	SavesNothing         Saves = 1 << iota
	SavesInput                 // the first input
	SavesSecond                // the second input
	SavesInputs                // all inputs of a floating-point type
	SavesFactors               // each factor of a product of which another factor has a gradient
	SavesIndices               // inputs of integers and truth values: indices, conditions
	SavesOutput                // the output
	SavesOutputForSecond       // the output if the second input has a gradient
	// Overwrites is set where the output may be stored in the memory of an input that is not saved.
	Overwrites
)

// Has reports whether s includes t.
func (s Saves) Has(t Saves) bool { return s&t != 0 }

// StoresInput reports whether the forward pass of n, an operator with these saved tensors, stores input i. The function
// hasGrad reports whether an input, which may be nil, has a gradient.
func (s Saves) StoresInput(n *ir.Node, i int, isFloat bool, hasGrad func(*ir.Value) bool) bool {
	switch {
	case !isFloat:
		return s.Has(SavesIndices)
	case s.Has(SavesFactors):
		return isFactor(n, i) && otherFactor(n, i, hasGrad)
	}
	return s.Has(SavesInputs) || s.Has(SavesInput) && i == 0 || s.Has(SavesSecond) && i == 1
}

// StoresOutput reports whether the forward pass of n stores its outputs.
func (s Saves) StoresOutput(n *ir.Node, hasGrad func(*ir.Value) bool) bool {
	return s.Has(SavesOutput) || s.Has(SavesOutputForSecond) && hasGrad(n.Input(1))
}

// isFactor reports whether input i of a product is a factor, and not the bias.
func isFactor(n *ir.Node, i int) bool { return Of(n).Input(i).Role != Bias }

// otherFactor reports whether a factor besides i has a gradient.
func otherFactor(n *ir.Node, i int, hasGrad func(*ir.Value) bool) bool {
	for j, v := range n.Inputs() {
		if j != i && isFactor(n, j) && hasGrad(v) {
			return true
		}
	}
	return false
}

// saves are by tensors. Views, which save nothing, are added. Exception: a LeakyRelu with a negative slope saves its
// input.
var saves = map[Saves][]string{
	SavesNothing: {
		"AveragePool", "Cast", "CastLike", "Ceil", "Concat", "CumSum", "DepthToSpace", "Expand", "Floor", "GlobalAveragePool",
		"GlobalMaxPool", "MaxPool", "Mean", "Pad", "ReduceMean", "ReduceSum", "Resize", "ReverseSequence", "Round", "Sign",
		"Slice", "SpaceToDepth", "Split", "Sum", "Tile", "Transpose", "Trilu", "Upsample",
	},
	// Dropout's mask is regenerated from the seed.
	SavesNothing | Overwrites: {"Add", "Dropout", "Neg", "Sub"},
	SavesInput: {
		"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "Cos", "Cosh", "Erf", "Gelu",
		"GroupNormalization", "HardSwish", "InstanceNormalization", "LRN", "LayerNormalization", "Log",
		"MeanVarianceNormalization", "Mish", "PRelu", "RMSNormalization", "ReduceL1", "ReduceProd", "ReduceSumSquare",
		"Shrink", "Sin", "Sinh", "Swish", "com.microsoft.Gelu",
	},
	SavesOutput: {
		"Celu", "Elu", "Exp", "HardSigmoid", "LogSoftmax", "Reciprocal", "ReduceLogSum", "Selu", "Sigmoid", "Softmax",
		"Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
	},
	SavesOutput | Overwrites: {"Clip", "LeakyRelu", "Relu"},
	SavesInput | SavesOutput: {"LpNormalization", "ReduceL2", "ReduceLogSumExp", "ReduceMax",
		"ReduceMin"},
	SavesSecond | SavesOutputForSecond:              {"Div"},
	SavesInput | SavesSecond | SavesOutputForSecond: {"Pow"},
	// The gradients of convolutions depend on the shapes of both factors.
	SavesInput | SavesSecond: {"Conv", "ConvTranspose"},
	SavesFactors:             {"Einsum", "Gemm", "MatMul", "Mul"},
	SavesIndices:             {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Where"},
	// Attention by blocks (Dao et al., FlashAttention, 2022, arXiv:2205.14135, algorithm 4) recomputes the scores,
	// recurrent layers their gates.
	SavesInputs | SavesOutput: {"Attention", "GRU", "LSTM", "RNN", "com.microsoft.Attention",
		"com.microsoft.MultiHeadAttention"},
}

// zeroGradients are roundings, and operators on shapes and positions; predicates are added.
var zeroGradients = []string{
	"ArgMax", "ArgMin", "Ceil", "ConstantOfShape", "EyeLike", "Floor", "NonZero", "OneHot", "Range", "Round", "Shape",
	"Sign", "Size",
}
