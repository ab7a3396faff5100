package operator

import "slices"

// quantizedOutputs are the operators whose first output is quantized data.
var quantizedOutputs = []string{
	"DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear", "com.microsoft.QGemm",
	"com.microsoft.QLinearAdd", "com.microsoft.QLinearAveragePool", "com.microsoft.QLinearConcat",
	"com.microsoft.QLinearConv", "com.microsoft.QLinearGlobalAveragePool", "com.microsoft.QLinearLeakyRelu",
	"com.microsoft.QLinearMul", "com.microsoft.QLinearReduceMean", "com.microsoft.QLinearSigmoid",
	"com.microsoft.QLinearSoftmax", "com.microsoft.QLinearWhere", "com.microsoft.QuantizeLinear",
}

// moves are the operators that compute no new values. Pad, Scatter and Where bring in others.
var moves = map[Move][]string{
	View:     {"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"},
	Permutes: {"DepthToSpace", "ReverseSequence", "SpaceToDepth", "Transpose"},
	Picks: {
		"Compress", "Concat", "Expand", "Gather", "GatherElements", "GatherND", "Slice", "Split", "Tile",
		"ai.onnx.ml.ArrayFeatureExtractor",
	},
	Compares: {"GlobalMaxPool", "Max", "MaxPool", "MaxRoiPool", "Min", "ReduceMax", "ReduceMin", "TopK"},
}

// unary are the operators that compute each element from one element of the first input.
var unary = []string{
	"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "CastLike", "Ceil", "Celu", "Clip",
	"Cos", "Cosh", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf",
	"IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
	"Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "com.microsoft.Gelu",
	"com.microsoft.QLinearLeakyRelu", "com.microsoft.QLinearSigmoid", "com.microsoft.QuickGelu",
}

// broadcasts are those that compute each element from elements of all inputs, broadcast. FastGelu adds a bias.
var broadcasts = []string{
	"Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
	"LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
	"com.microsoft.BiasGelu", "com.microsoft.FastGelu",
}

var predicates = []string{
	"And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor",
}

// bounded are the operators, predicates aside, whose outputs are between bounds, or normalized.
var bounded = []string{
	"Atan", "Cos", "Erf", "HardSigmoid", "Hardmax", "Sigmoid", "Sign", "Sin", "Softmax", "Softsign", "Tanh",
}

var reductions = []string{
	"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
	"ReduceSum", "ReduceSumSquare",
}

var pools = []string{"AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool"}

// spatial are the operators, pools and normalizations aside, whose first input is N × C × D1 × ….
var spatial = []string{
	"Conv", "ConvInteger", "ConvTranspose", "DeformConv", "DepthToSpace", "GridSample", "LRN", "MaxRoiPool", "QLinearConv",
	"Resize", "RoiAlign", "SpaceToDepth", "Upsample", "com.microsoft.FusedConv", "com.microsoft.QLinearAveragePool",
	"com.microsoft.QLinearConv", "com.microsoft.QLinearGlobalAveragePool",
}

var spatialNormalizations = []string{"BatchNormalization", "GroupNormalization", "InstanceNormalization"}

// perChannel are the operators, pools aside, that compute channels independently.
var perChannel = []string{"BatchNormalization", "InstanceNormalization"}

// homogeneous are the operators, views and pools aside, with f(s·x) = s·f(x) for s > 0.
var homogeneous = []string{"Abs", "LeakyRelu", "Neg", "PRelu", "Relu"}

// rectifiers are the operators whose outputs have a positive mean, whatever that of the inputs. Clip is mostly Relu
// with a maximum.
var rectifiers = []string{
	"Abs", "Celu", "Clip", "Elu", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "ReduceL1",
	"ReduceL2", "ReduceSumSquare", "Relu", "Sigmoid", "Softmax", "Softplus", "Sqrt", "Swish", "ThresholdedRelu",
	"com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.Gelu", "com.microsoft.QuickGelu",
}

// keepMeans are the operators, pools and moves aside, whose outputs have a mean where the first input has.
var keepMeans = []string{"Cast", "Dropout", "LRN", "Pad", "ReduceMax", "ReduceMean", "ReduceSum", "Resize", "Upsample"}

// float16CPU are the operators that ONNX Runtime 1.31.1 computes in float16 on CPUs.
var float16CPU = []string{
	"Cast", "Concat", "DequantizeLinear", "Expand", "Gather", "Identity", "LayerNormalization", "Reshape", "Slice",
	"Squeeze", "Transpose", "Unsqueeze", "Where", "com.microsoft.GatherBlockQuantized", "com.microsoft.MatMulNBits",
}

// affine are the operators with x + c, x - c, x·c and x/c.
var affine = map[Affine][]string{Offset: {"Add", "Sub"}, Factor: {"Div", "Mul"}}

var selects = []string{"Clip", "Max", "Min", "Pad", "ScatterElements", "ScatterND", "Trilu", "Where"}

var variadic = []string{"Concat", "Max", "Mean", "Min", "Sum"}

var commutative = []string{
	"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max", "Mean", "Min", "Mul", "Or", "Sum", "Xor",
}

// nonlinearities are the activation functions. Abs, Exp, Sqrt and the like are functions for other purposes; Clip is a
// bound.
var nonlinearities = []string{
	"Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "Relu", "Selu", "Sigmoid", "Softplus",
	"Softsign", "Swish", "Tanh", "ThresholdedRelu", "com.microsoft.BiasGelu", "com.microsoft.FastGelu",
	"com.microsoft.Gelu", "com.microsoft.QuickGelu",
}

var distributions = []string{"LogSoftmax", "Softmax"}

// attentions have queries, keys and values as inputs; com.microsoft's Attention has the input that they are computed
// from.
var attentions = []string{
	"Attention", "ai.onnx.preview.FlexAttention", "com.microsoft.GroupQueryAttention", "com.microsoft.MultiHeadAttention",
}

// layoutAgnostic are the operators, elementwise ones and reductions aside, that work along axes by number only.
var layoutAgnostic = []string{
	"ArgMax", "ArgMin", "Concat", "DequantizeLinear", "DynamicQuantizeLinear", "Hardmax", "LogSoftmax", "Pad",
	"QuantizeLinear", "Slice", "Softmax", "Split", "Tile",
}

// flattensBefore is by opset.
var flattensBefore = map[int64][]string{13: {"Hardmax", "LogSoftmax", "Softmax"}}

// controlFlow has no SequenceMap: ONNX defines it as a function with a Loop.
var controlFlow = []string{"If", "Loop", "Scan"}

// randoms are the operators with random outputs, Dropout in training.
var randoms = []string{
	"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
}

// elemAttrs are by attribute.
var elemAttrs = map[string][]string{
	"dtype": {"Bernoulli", "EyeLike", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
		"RandomUniformLike"},
	"output_datatype": {"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"},
	"output_dtype":    {"DequantizeLinear", "QuantizeLinear"},
	"to":              {"Cast"},
	"value":           {"ConstantOfShape"},
}

// integerKernels does not include, as they are computed in float: Sub, Div, Max, Min, Tanh, HardSigmoid, HardSwish,
// Elu, Pad, GlobalMaxPool, SpaceToDepth, ReduceMean, the normalizations and ConvTranspose.
var integerKernels = []string{
	"Add", "AveragePool", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GlobalAveragePool", "LeakyRelu",
	"MaxPool", "Mul", "ReduceMax", "ReduceMin", "Reshape", "Resize", "Sigmoid", "Slice", "Softmax", "Split", "Squeeze",
	"Tile", "Transpose", "Unsqueeze",
}

var passesDequantize = []string{"Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose",
	"Unsqueeze"}

var clamps = []string{"Clip", "Relu"}

// facts is the table, put together from the lists above.
var facts = build()

func build() map[string]*Facts {
	all := map[string]*Facts{}
	at := func(name string) *Facts {
		if all[name] == nil {
			all[name] = &Facts{}
		}
		return all[name]
	}
	each := func(set func(*Facts), lists ...[]string) {
		for _, name := range slices.Concat(lists...) {
			set(at(name))
		}
	}
	for name, in := range parameters {
		at(name).Inputs = in
	}
	for name, list := range indexing {
		at(name).Indexing = list
	}
	for name, list := range states {
		at(name).States = list
	}
	for name, sum := range sums {
		at(name).Sum = sum
	}
	byValue(each, moves, func(f *Facts, m Move) { f.Move = m })
	byValue(each, affine, func(f *Facts, a Affine) { f.Affine = a })
	byValue(each, flattensBefore, func(f *Facts, opset int64) { f.FlattensBefore = opset })
	byValue(each, elemAttrs, func(f *Facts, attr string) { f.ElemAttr = attr })
	each(func(f *Facts) { f.Saves = SavesNothing }, moves[View])
	byValue(each, saves, func(f *Facts, s Saves) { f.Saves = s })
	byValue(each, precisions, func(f *Facts, p Precision) { f.Precision = p })
	each(func(f *Facts) { f.QuantizedOutput = true }, quantizedOutputs)
	each(func(f *Facts) { f.Elementwise = Unary }, unary)
	each(func(f *Facts) { f.Elementwise = Broadcasts }, broadcasts)
	each(func(f *Facts) { f.Predicate = true }, predicates)
	each(func(f *Facts) { f.Bounded = true }, bounded, predicates)
	each(func(f *Facts) { f.Reduction = true }, reductions)
	each(func(f *Facts) { f.Spatial = true }, spatial, pools, spatialNormalizations)
	each(func(f *Facts) { f.PerChannel = true }, perChannel, pools)
	each(func(f *Facts) { f.Float16CPU = true }, float16CPU)
	each(func(f *Facts) { f.Homogeneous = true }, homogeneous, pools, moves[View])
	each(func(f *Facts) { f.Rectifies = true }, rectifiers)
	each(func(f *Facts) { f.KeepsMean = true },
		keepMeans, pools, moves[View], moves[Permutes], moves[Picks], moves[Compares])
	each(func(f *Facts) { f.Selects = true }, selects)
	each(func(f *Facts) { f.Variadic = true }, variadic)
	each(func(f *Facts) { f.Commutative = true }, commutative)
	each(func(f *Facts) { f.Nonlinearity = true }, nonlinearities)
	each(func(f *Facts) { f.Distribution = true }, distributions)
	each(func(f *Facts) { f.Attention = true }, attentions)
	for name, in := range attentionInputs {
		f := at(name)
		f.Masks, f.Total, f.Lengths, f.Rotary = in.masks, in.total, in.lengths, in.rotary
	}
	each(func(f *Facts) { f.LayoutAgnostic = true }, layoutAgnostic, unary, broadcasts, reductions)
	each(func(f *Facts) { f.Random = true }, randoms)
	each(func(f *Facts) { f.ZeroGradient = true }, zeroGradients, predicates)
	each(func(f *Facts) { f.ControlFlow = true }, controlFlow)
	each(func(f *Facts) { f.IntegerKernel = true }, integerKernels)
	each(func(f *Facts) { f.PassesDequantize = true }, passesDequantize)
	each(func(f *Facts) { f.Clamps = true }, clamps)
	return all
}

// byValue sets a column from the lists of the operators that have each value.
func byValue[T comparable](each func(func(*Facts), ...[]string), lists map[T][]string, set func(*Facts, T)) {
	for value, names := range lists {
		each(func(f *Facts) { set(f, value) }, names)
	}
}
