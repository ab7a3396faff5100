package operator

// Saves are the tensors that the forward pass of an operator stores for its backward pass, besides small ones such as means.
type Saves uint8

// The saved tensors; 0 is unknown.
const (
	SavesNothing  Saves = 1 << iota
	SavesInput          // the first input
	SavesInputs         // all inputs of a floating-point type
	SavesOperands       // each input of which another operand has a gradient: factors of products
	SavesIndices        // inputs of integers and truth values: indices, conditions
	SavesOutput
	// Overwrites is set where the output may be stored in the memory of an input that is not saved.
	Overwrites
)

// Has reports whether s includes t.
func (s Saves) Has(t Saves) bool { return s&t != 0 }

// saves are by tensors. Views, which save nothing, are added.
var saves = map[Saves][]string{
	SavesNothing: {
		"AveragePool", "Cast", "CastLike", "Ceil", "Concat", "CumSum", "DepthToSpace", "Expand", "Floor", "GlobalAveragePool", "GlobalMaxPool",
		"MaxPool", "Mean", "Pad", "ReduceMean", "ReduceSum", "Resize", "ReverseSequence", "Round", "Sign", "Slice", "SpaceToDepth", "Split", "Sum",
		"Tile", "Transpose", "Trilu", "Upsample",
	},
	// Dropout's mask is regenerated from the seed.
	SavesNothing | Overwrites: {"Add", "Dropout", "Neg", "Sub"},
	SavesInput: {
		"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "Clip", "Cos", "Cosh", "Erf", "Gelu",
		"GroupNormalization", "HardSwish", "InstanceNormalization", "LRN", "LayerNormalization", "Log", "LpNormalization",
		"MeanVarianceNormalization", "Mish", "PRelu", "Pow", "RMSNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
		"ReduceProd", "ReduceSumSquare", "Shrink", "Sin", "Sinh", "Swish",
		"com.microsoft.Gelu",
	},
	SavesOutput: {
		"Celu", "Elu", "Exp", "HardSigmoid", "LogSoftmax", "Reciprocal", "Selu", "Sigmoid", "Softmax", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
		"ThresholdedRelu",
	},
	SavesOutput | Overwrites: {"LeakyRelu", "Relu"},
	SavesInput | SavesOutput: {"GRU", "LSTM", "RNN", "ReduceMax", "ReduceMin"},
	SavesOperands:            {"Conv", "ConvTranspose", "Div", "Einsum", "Gemm", "MatMul", "Mul"},
	SavesIndices:             {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Where"},
	// Attention by blocks (Dao et al., FlashAttention, 2022, arXiv:2205.14135, algorithm 4) recomputes the scores.
	SavesInputs | SavesOutput: {"Attention", "com.microsoft.Attention", "com.microsoft.MultiHeadAttention"},
}

// zeroGradients are roundings, and operators on shapes and positions; predicates are added.
var zeroGradients = []string{
	"ArgMax", "ArgMin", "Ceil", "ConstantOfShape", "EyeLike", "Floor", "NonZero", "OneHot", "Range", "Round", "Shape", "Sign", "Size",
}
