package opset

import "github.com/mcompress/mcompress/ir"

// elemFixed are the operators whose outputs have the same types in every model.
var elemFixed = map[string][]ir.DType{
	"And":                   {ir.Bool},
	"ArgMax":                {ir.Int64},
	"ArgMin":                {ir.Int64},
	"ConvInteger":           {ir.Int32},
	"DynamicQuantizeLinear": {ir.Uint8, ir.Float, ir.Uint8},
	"Equal":                 {ir.Bool},
	"Greater":               {ir.Bool},
	"GreaterOrEqual":        {ir.Bool},
	"IsInf":                 {ir.Bool},
	"IsNaN":                 {ir.Bool},
	"Less":                  {ir.Bool},
	"LessOrEqual":           {ir.Bool},
	"MatMulInteger":         {ir.Int32},
	"NonMaxSuppression":     {ir.Int64},
	"NonZero":               {ir.Int64},
	"Not":                   {ir.Bool},
	"Or":                    {ir.Bool},
	"Shape":                 {ir.Int64},
	"Size":                  {ir.Int64},
	"Xor":                   {ir.Bool},
}

// elemFrom are the operators whose first output has the type of that input.
// Where several inputs have one type, each of them is tried.
var elemFrom = map[string][]int{
	"CastLike": {1}, "OneHot": {2}, "QLinearConv": {7}, "QLinearMatMul": {7},
	"Abs": {0}, "Add": {0, 1},
	"AveragePool": {0}, "BatchNormalization": {0}, "Ceil": {0}, "Celu": {0}, "Clip": {0, 1, 2}, "Compress": {0},
	"Concat": {0, 1, 2, 3}, "Conv": {0, 1, 2}, "ConvTranspose": {0, 1, 2}, "Cos": {0}, "CumSum": {0}, "DepthToSpace": {0},
	"Div": {0, 1}, "Dropout": {0}, "Einsum": {0, 1}, "Elu": {0}, "Erf": {0}, "Exp": {0}, "Expand": {0}, "Flatten": {0},
	"Floor": {0}, "GRU": {0, 1, 2}, "Gather": {0}, "GatherElements": {0}, "GatherND": {0}, "Gelu": {0}, "Gemm": {0, 1, 2},
	"GlobalAveragePool": {0}, "GlobalLpPool": {0}, "GlobalMaxPool": {0}, "GridSample": {0},
	"GroupNormalization": {0, 1, 2}, "HardSigmoid": {0}, "HardSwish": {0}, "Hardmax": {0}, "Identity": {0},
	"InstanceNormalization": {0, 1, 2}, "LRN": {0}, "LSTM": {0, 1, 2}, "LayerNormalization": {0}, "LeakyRelu": {0},
	"Log": {0}, "LogSoftmax": {0}, "LpNormalization": {0}, "LpPool": {0}, "MatMul": {0, 1}, "Max": {0, 1, 2, 3},
	"MaxPool": {0}, "Mean": {0, 1, 2, 3}, "MeanVarianceNormalization": {0}, "Min": {0, 1, 2, 3}, "Mish": {0},
	"Mod": {0, 1}, "Mul": {0, 1}, "Neg": {0}, "PRelu": {0}, "Pad": {0}, "Pow": {0}, "RNN": {0, 1, 2}, "Range": {0, 1, 2},
	"Reciprocal": {0}, "ReduceL1": {0}, "ReduceL2": {0}, "ReduceLogSum": {0}, "ReduceLogSumExp": {0}, "ReduceMax": {0},
	"ReduceMean": {0}, "ReduceMin": {0}, "ReduceProd": {0}, "ReduceSum": {0}, "ReduceSumSquare": {0}, "Relu": {0},
	"Reshape": {0}, "Resize": {0}, "ReverseSequence": {0}, "RoiAlign": {0, 1}, "Round": {0}, "Scatter": {0, 2},
	"ScatterElements": {0, 2}, "ScatterND": {0, 2}, "Selu": {0}, "Shrink": {0}, "Sigmoid": {0}, "Sign": {0}, "Sin": {0},
	"Slice": {0}, "Softmax": {0}, "Softplus": {0}, "Softsign": {0}, "SpaceToDepth": {0}, "Split": {0}, "Sqrt": {0},
	"Squeeze": {0}, "Sub": {0, 1}, "Sum": {0, 1, 2, 3}, "Tanh": {0}, "ThresholdedRelu": {0}, "Tile": {0}, "TopK": {0},
	"Transpose": {0}, "Trilu": {0}, "Unsqueeze": {0}, "Upsample": {0}, "Where": {1, 2},
}

// everyOutput are those of elemFrom whose other outputs have the first one's type.
var everyOutput = map[string]bool{"GRU": true, "LSTM": true, "RNN": true, "Split": true}

// elemOf is the element type of n's output i.
func (f *inference) elemOf(n *ir.Node, i int) ir.DType {
	op := n.Op.Type
	if ts := elemFixed[op]; i < len(ts) {
		return ts[i]
	}
	switch op {
	case "Cast":
		return castTo(n)
	case "ConstantOfShape":
		if a := n.Attr("value"); a != nil && a.Tensor != nil {
			return a.Tensor.DType
		}
		return defaultElem(n, "value", ir.Float)
	case "DequantizeLinear":
		return f.attrOr(n, "output_dtype", 1)
	case "QuantizeLinear":
		return f.quantized(n)
	}
	if i > 0 && !everyOutput[op] {
		return ir.Undefined
	}
	for _, j := range elemFrom[op] {
		if t := f.elem(n.Input(j)); t != ir.Undefined {
			return t
		}
	}
	return ir.Undefined
}

// defaultElem is def where n has no attribute of that name: a default applies.
func defaultElem(n *ir.Node, name string, def ir.DType) ir.DType {
	if n.Attr(name) != nil {
		return ir.Undefined
	}
	return def
}

// castTo is Cast's target; before opset 6 it was written as a word.
func castTo(n *ir.Node) ir.DType {
	a := n.Attr("to")
	if a == nil || a.Ref != "" {
		return ir.Undefined
	}
	if a.Type == ir.AttrString {
		return dtypeNamed(a.S)
	}
	return ir.DType(a.I)
}

// attrOr is the type that an attribute names, or input i's where it names none.
func (f *inference) attrOr(n *ir.Node, name string, i int) ir.DType {
	t, ok := attrInt(n, name, 0)
	if !ok {
		return ir.Undefined
	}
	if t != 0 {
		return ir.DType(t)
	}
	return f.elem(n.Input(i))
}

// quantized is QuantizeLinear's type: that of the zero point, uint8 without one.
func (f *inference) quantized(n *ir.Node) ir.DType {
	if n.Input(2) == nil && n.Attr("output_dtype") == nil {
		return ir.Uint8
	}
	return f.attrOr(n, "output_dtype", 2)
}
