package modelgen

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A function is an operator whose output has the type and shape of its one input.
type function struct {
	op     string
	domain string
	since  int64
	half   bool // of float16 and double models too
	jumps  bool // small errors of the input may have large effects
}

var functions = []function{
	{op: "Relu", half: true}, {op: "Sigmoid", half: true}, {op: "Tanh", half: true}, {op: "Identity", half: true},
	{op: "Neg", half: true}, {op: "Abs", half: true},
	{op: "LeakyRelu"}, {op: "Elu"}, {op: "Softplus"}, {op: "HardSigmoid"}, {op: "Selu"}, {op: "Softsign"},
	{op: "Sin"}, {op: "Cos"}, {op: "Atan"},
	{op: "Erf", since: 9}, {op: "Sinh", since: 9}, {op: "Asinh", since: 9}, {op: "Shrink", since: 9, jumps: true},
	{op: "ThresholdedRelu", since: 10, jumps: true},
	{op: "Celu", since: 12}, {op: "HardSwish", since: 14}, {op: "Mish", since: 18}, {op: "Gelu", since: 20},
	{op: "Swish", since: 24},
	{op: "Floor", jumps: true}, {op: "Ceil", jumps: true}, {op: "Round", since: 11, jumps: true},
	{op: "Sign", since: 9, jumps: true},
	{op: "Dropout", since: 7}, {op: "LogSoftmax", since: 13}, {op: "Hardmax", since: 13, jumps: true},
	{op: "LpNormalization"},
	{op: "MeanVarianceNormalization", since: 9},
	{op: "Gelu", domain: contributed}, {op: "FastGelu", domain: contributed}, {op: "QuickGelu", domain: contributed},
}

// contributed is the domain of ONNX Runtime's operators.
const contributed = "com.microsoft"

func (f function) fits(b *builder, x val) bool {
	switch {
	case f.since > b.opset || b.float != ir.Float && !f.half || f.domain != "" && b.nested: // functions import ONNX only
		return false
	case f.op == "MeanVarianceNormalization":
		return x.rank() == 4 && x.shape[0]*x.shape[2]*x.shape[3] > 1
	case f.op == "LpNormalization" || f.op == "LogSoftmax" || f.op == "Hardmax":
		return x.rank() > 0 && x.last() > 1
	}
	return true
}

func (b *builder) unary(x val) val {
	for {
		if f := one(b, functions...); f.fits(b, x) {
			return b.apply(f, x)
		}
	}
}

func (b *builder) apply(f function, x val) val {
	b.m.discontinuous = b.m.discontinuous || f.jumps
	b.m.Contrib = b.m.Contrib || f.domain == contributed
	var attrs []Attr
	if f.op == "MeanVarianceNormalization" {
		attrs = append(attrs, ints("axes", 0, 2, 3))
	}
	return b.domain(f.domain, f.op, []val{x}, x.typ, x.shape, attrs...)
}

// pair combines x with a function of it.
func (b *builder) pair(x val) val {
	y := b.like("Tanh", x)
	switch op := one(b, "Sub", "Max", "Min", "Sum", "Mean", "Mul", "Where", "Pow", "Div", "Mod", "PRelu", "Clip"); op {
	case "Max", "Min", "Sum", "Mean":
		return b.like(op, x, y, b.like("Neg", y))
	case "Where":
		if b.opset < 9 {
			return b.like("Sub", x, y)
		}
		b.m.discontinuous = true
		compare := []string{"Greater", "Less"}
		if b.opset >= 12 {
			compare = append(compare, "Equal", "GreaterOrEqual", "LessOrEqual")
		}
		at := b.node(one(b, compare...), []val{x, y}, ir.Bool, x.shape)
		if b.opset >= 20 && b.chance(4) {
			at = b.node(one(b, "IsNaN", "IsInf"), []val{x}, ir.Bool, x.shape)
		}
		if b.chance(2) {
			at = b.like("Not", at)
		}
		other := b.node(one(b, "Greater", "Less"), []val{y, b.number(0.1)}, ir.Bool, x.shape)
		at = b.like(one(b, "And", "Or", "Xor"), at, other)
		return b.node("Where", []val{at, x, y}, x.typ, x.shape)
	case "Pow":
		return b.like("Pow", x, b.number(2))
	case "Div":
		return b.like("Div", x, b.like("Add", b.like("Abs", x), b.number(1)))
	case "Mod":
		if b.opset < 10 {
			return b.like("Sub", x, y)
		}
		b.m.discontinuous = true
		return b.node("Mod", []val{x, b.number(1.5)}, x.typ, x.shape, i64("fmod", 1))
	case "PRelu":
		return b.like("PRelu", x, b.weight("slope", 4, x.last()))
	case "Clip":
		return b.relu6(x)
	default:
		return b.like(op, x, y)
	}
}

// positive applies functions of positive numbers.
func (b *builder) positive(x val) val {
	y := b.like("Add", b.like("Abs", x), b.number(1))
	ops := []string{"Sqrt", "Log", "Reciprocal"}
	if b.opset >= 9 {
		ops = append(ops, "Acosh")
	}
	return b.like(one(b, ops...), y)
}

// bounded applies functions of numbers up to 1.
func (b *builder) bounded(x val) val {
	y := b.like("Mul", b.like("Tanh", x), b.number(0.9))
	ops := []string{"Exp", "Tan", "Asin", "Acos"}
	if b.opset >= 9 {
		ops = append(ops, "Cosh", "Atanh")
	}
	return b.like(one(b, ops...), y)
}

// reduction reduces one axis, or finds positions along it.
func (b *builder) reduction(x val) val {
	op := one(b, "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp",
		"ReduceLogSum", "ReduceProd", "ArgMax", "ArgMin")
	axis := int64(b.r.IntN(x.rank()))
	keep := b.r.Int64N(2)
	shape := with(x.shape, int(axis), 1)
	if keep == 0 {
		shape = slices.Delete(shape, int(axis), int(axis)+1)
	}
	attrs := []Attr{i64("keepdims", keep)}
	in := []val{x}
	switch op {
	case "ArgMax", "ArgMin":
		b.m.discontinuous = true
		return b.cast(b.node(op, in, ir.Int64, shape, append(attrs, i64("axis", axis))...), b.float)
	case "ReduceLogSum":
		in[0] = b.like("Add", b.like("Abs", x), b.number(1))
	case "ReduceProd":
		in[0] = b.like("Sigmoid", x)
	}
	if since := int64(18); b.opset < since && (op != "ReduceSum" || b.opset < 13) {
		attrs = append(attrs, ints("axes", axis))
	} else {
		in = append(in, b.list(axis))
	}
	return b.node(op, in, x.typ, shape, attrs...)
}

// normalized applies a normalization by channel or by row, of ONNX or ONNX Runtime.
func (b *builder) normalized(x val) val {
	c := x.shape[1]
	gain := func(n int64) val { return b.weight("gain", 1, n) }
	switch n := b.r.IntN(6); {
	case n == 0 && x.rank() >= 3 && x.elems() > x.shape[0]*c:
		return b.node("InstanceNormalization", []val{x, gain(c), b.weight("shift", 4, c)}, x.typ, x.shape)
	case n == 1 && x.rank() == 4:
		return b.node("LRN", []val{x}, x.typ, x.shape, i64("size", 3))
	case n == 2 && x.rank() >= 3 && b.opset >= 21 && c%2 == 0:
		return b.node("GroupNormalization", []val{x, gain(c), b.weight("shift", 4, c)}, x.typ, x.shape,
			i64("num_groups", 2))
	case n == 3 && b.opset >= 23:
		return b.node("RMSNormalization", []val{x, gain(x.last())}, x.typ, x.shape)
	case n == 4 && x.rank() == 3:
		b.m.Contrib = true
		skip := b.like("Tanh", x)
		if b.chance(2) {
			return b.domain(contributed, "SkipSimplifiedLayerNormalization", []val{x, skip, gain(x.last())}, x.typ,
				x.shape)
		}
		return b.domain(contributed, "SkipLayerNormalization",
			[]val{x, skip, gain(x.last()), b.weight("shift", 4, x.last()), b.weight("bias", 4, x.last())}, x.typ,
			x.shape)
	}
	return b.layerNorm(x)
}

// window multiplies x by the constant expression of a window, as spectra of signals are made.
func (b *builder) window(x val) val {
	w := b.node(one(b, "HannWindow", "HammingWindow", "BlackmanWindow"), []val{b.scalar(x.last())}, ir.Float,
		[]int64{x.last()})
	return b.like("Mul", x, w)
}
