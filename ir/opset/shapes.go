package opset

import "github.com/mcompress/mcompress/ir"

// A shapeRule gives the shape of n's output i, if its rank follows from what is known.
type shapeRule func(f *inference, n *ir.Node, i int) ([]ir.Dim, bool)

// shapeRuleOf is nil for operators, such as Einsum, whose shapes nearby values do
// not tell.
func shapeRuleOf(op string) shapeRule {
	switch op {
	case "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "Bernoulli", "BitwiseNot", "Cast",
		"CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh", "CumSum", "DequantizeLinear", "Dropout", "DynamicQuantizeLinear",
		"Elu", "Erf", "Exp", "Floor", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
		"InstanceNormalization", "IsInf", "IsNaN", "LRN", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax",
		"LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not", "PRelu", "QuantizeLinear", "RMSNormalization",
		"RandomNormalLike", "RandomUniformLike", "Reciprocal", "Relu", "ReverseSequence", "Round", "Scatter",
		"ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign",
		"Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu":
		return sameAs(0)
	case "GatherElements":
		return sameAs(1)
	case "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
		"Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor":
		return broadcast
	case "DepthToSpace":
		return blockShape(1)
	case "SpaceToDepth":
		return blockShape(-1)
	case "Pad":
		return pad
	case "Resize", "Upsample":
		return resizeShape
	case "Split":
		return split
	case "Tile":
		return tile
	case "TopK":
		return topK
	case "If":
		return branches
	case "Scan":
		return scanShape
	case "Loop":
		return loopShape
	case "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
		"ReduceSum", "ReduceSumSquare":
		return reduce
	case "ArgMax", "ArgMin":
		return reduceOne
	case "AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool":
		return spatial
	case "Conv", "ConvInteger":
		return conv(1)
	case "QLinearConv":
		return conv(3)
	case "ConvTranspose":
		return convTranspose
	case "MatMul", "MatMulInteger":
		return matmul(0, 1)
	case "QLinearMatMul":
		return matmul(0, 3)
	case "Flatten":
		return flatten
	case "NonMaxSuppression", "NonZero":
		return fixedRank(2)
	case "Range":
		return rangeShape
	case "Shape":
		return shapeOf
	case "Slice":
		return slice
	case "Size":
		return fixedRank(0)
	case "RoiAlign":
		return fixedRank(4)
	case "GRU", "LSTM", "RNN":
		return recurrent
	case "Concat":
		return concat
	case "ConstantOfShape":
		return ofShape
	case "Expand":
		return expand
	case "Gather":
		return gather
	case "Gemm":
		return gemm
	case "OneHot":
		return oneHot
	case "Reshape":
		return reshape
	case "Squeeze":
		return squeeze
	case "Transpose":
		return transpose
	case "Unsqueeze":
		return unsqueeze
	}
	return contribShapeRule(op)
}

// sameAs gives input j's shape to the first output; DynamicQuantizeLinear's others
// are scalars, those of the rest are not known.
func sameAs(j int) shapeRule {
	return func(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
		if i == 0 {
			return f.shape(n.Input(j))
		}
		return []ir.Dim{}, n.Op.Type == "DynamicQuantizeLinear"
	}
}

func fixedRank(r int) shapeRule {
	return func(*inference, *ir.Node, int) ([]ir.Dim, bool) { return unknown(r), true }
}

// broadcast is NumPy's; before opset 7 the first input's shape was the result's.
func broadcast(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	if v := n.Graph().Opset(""); v < 7 {
		return f.shape(n.Input(0))
	}
	out := []ir.Dim{}
	for _, v := range n.Inputs() {
		s, ok := f.shape(v)
		if !ok {
			return nil, false
		}
		out = Broadcast(out, s)
	}
	return out, true
}

// Broadcast is the shape that a and b broadcast to.
func Broadcast(a, b []ir.Dim) []ir.Dim {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append([]ir.Dim{}, a...)
	for i := range b {
		at := len(a) - len(b) + i
		out[at] = mergeDim(a[at], b[i])
	}
	return out
}

// mergeDim takes a size above 1 from either side; a symbol may turn out to be 1.
func mergeDim(a, b ir.Dim) ir.Dim {
	switch {
	case a.Known() && a.N != 1:
		return a
	case b.Known() && b.N != 1:
		return b
	case a == b || b.Known():
		return a
	case a.Known():
		return b
	}
	return ir.Dim{N: -1}
}

func matmul(a, b int) shapeRule {
	return func(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
		x, ok := f.shape(n.Input(a))
		y, ok2 := f.shape(n.Input(b))
		if !ok || !ok2 || len(x) == 0 || len(y) == 0 {
			return nil, false
		}
		if len(x) == 1 || len(y) == 1 {
			return unknown(max(len(x), len(y)) - 1), true
		}
		out := Broadcast(x[:len(x)-2], y[:len(y)-2])
		return append(out, x[len(x)-2], y[len(y)-1]), true
	}
}

func gemm(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	out := unknown(2)
	for i, name := range []string{"transA", "transB"} {
		s, ok := f.shape(n.Input(i))
		trans, ok2 := attrInt(n, name, 0)
		if !ok || !ok2 || len(s) != 2 {
			continue
		}
		if (trans != 0) == (i == 0) {
			out[i] = s[1]
		} else {
			out[i] = s[0]
		}
	}
	return out, true
}

func transpose(f *inference, n *ir.Node, _ int) ([]ir.Dim, bool) {
	s, ok := f.shape(n.Input(0))
	perm, known := attrInts(n, "perm")
	if !ok || !known {
		return unknown(len(s)), ok
	}
	out := unknown(len(s))
	for i := range out {
		from := len(s) - 1 - i
		if perm != nil {
			if i >= len(perm) || perm[i] < 0 || int(perm[i]) >= len(s) {
				return nil, false
			}
			from = int(perm[i])
		}
		out[i] = s[from]
	}
	return out, true
}

// axis makes a, which may count from the back, an index below rank.
func axis(a int64, rank int) (int, bool) {
	if a < 0 {
		a += int64(rank)
	}
	return int(a), a >= 0 && a < int64(rank)
}
