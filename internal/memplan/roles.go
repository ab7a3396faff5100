package memplan

import (
	"slices"

	"github.com/mcompress/mcompress/internal/memory/layout"
	"github.com/mcompress/mcompress/ir"
)

// A habit says what an operator of ONNX's own domain, or of com.microsoft, thinks of layouts.
// Operators without one read axes where they stand.
type habit struct {
	role   layout.Role
	since  int64 // the opset from which on it is so
	one    bool  // only its first input is an image
	consts bool  // if its other inputs, which name axes or count along them, are constants
	keeps  bool  // if it keeps the axes that it reduces
}

// habits are by operator. Elementwise operators, and those along an axis that an attribute or
// a constant names, do the same in either layout.
func habits() map[string]habit {
	all := map[string]habit{
		"Concat": {role: layout.Agnostic}, "Where": {role: layout.Agnostic},
		"Softmax": {role: layout.Agnostic, since: 13}, "LogSoftmax": {role: layout.Agnostic, since: 13}, "Hardmax": {role: layout.Agnostic, since: 13},
	}
	for _, name := range []string{
		"Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "FusedConv", "BatchNormalization", "InstanceNormalization",
		"GroupNormalization", "LRN", "MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool",
		"QLinearAveragePool", "QLinearGlobalAveragePool", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "GridSample", "AffineGrid",
		"MaxRoiPool", "RoiAlign",
	} {
		all[name] = habit{role: layout.Sensitive, one: true}
	}
	for _, name := range []string{
		"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh",
		"DequantizeLinear", "Dropout", "DynamicQuantizeLinear", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf",
		"IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "PRelu", "QLinearLeakyRelu", "QLinearSigmoid", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu",
		"Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
	} {
		all[name] = habit{role: layout.Agnostic, one: true}
	}
	for _, name := range []string{
		"Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
		"Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Xor",
	} {
		all[name] = habit{role: layout.Agnostic}
	}
	for _, name := range []string{"Pad", "Slice", "Split", "Tile"} {
		all[name] = habit{role: layout.Agnostic, one: true, consts: true}
	}
	for _, name := range []string{
		"ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
		"ReduceSum", "ReduceSumSquare",
	} {
		all[name] = habit{role: layout.Agnostic, one: true, consts: true, keeps: true}
	}
	return all
}

// of is the role of n, whose first input has so many axes.
func (h habit) of(n *ir.Node, rank int) layout.Role {
	if n.Op.Type == "Transpose" {
		return move(n.Attr("perm"), rank)
	}
	switch {
	case !ir.DefaultDomain(n.Op.Domain) && n.Op.Domain != "com.microsoft":
		return layout.Breaking
	case n.Graph().Opset("") < h.since:
		return layout.Breaking
	case h.keeps && n.Int("keepdims", 1) == 0:
		return layout.Breaking
	case h.consts && slices.ContainsFunc(n.Inputs()[1:], func(v *ir.Value) bool { return v != nil && v.Const == nil }):
		return layout.Breaking
	}
	return h.role
}

// move is the role of a Transpose. Of three axes, 0, 2, 1 goes either way; here it goes to channels
// last.
func move(perm *ir.Attr, rank int) layout.Role {
	if perm == nil || rank < 3 || len(perm.Ints) != rank {
		return layout.Breaking
	}
	last, first := []int64{0}, []int64{0, int64(rank) - 1}
	for i := 2; i < rank; i++ {
		last, first = append(last, int64(i)), append(first, int64(i)-1)
	}
	last = append(last, 1)
	switch {
	case slices.Equal(perm.Ints, last):
		return layout.ToLast
	case slices.Equal(perm.Ints, first):
		return layout.ToFirst
	}
	return layout.Breaking
}
