package opset

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A value of a test case: an input of the model where data is nil, else a constant.
type operandCase struct {
	elem  ir.DType
	shape []int64 // nil: a scalar
	bare  bool    // the model does not say which type and shape it has
	data  []float64
}

// A ruleCase is one node of an old opset and what the rule of version `to` makes of it.
type ruleCase struct {
	name    string
	op      string
	from    int64
	to      int64
	in      []operandCase
	attrs   []*ir.Attr
	outputs []string // those the model returns; y where nil
	unused  []string // further outputs, which nothing reads
	want    string   // the raised graph as text
	refused string   // or the reason
	fails   string   // why ONNX Runtime cannot run the old model
	newest  int64    // the last opset for which ONNX Runtime has a kernel, if that is not newestRun
}

func in(elem ir.DType, shape ...int64) operandCase { return operandCase{elem: elem, shape: shape} }

func x(shape ...int64) operandCase { return in(ir.Float, shape...) }

func bare(elem ir.DType, shape ...int64) operandCase {
	return operandCase{elem: elem, shape: shape, bare: true}
}

func constant(elem ir.DType, shape []int64, data ...float64) operandCase {
	return operandCase{elem: elem, shape: shape, data: data}
}

func absent() operandCase { return operandCase{} }

// noKernel is the reason of operators that ONNX Runtime may not run, as it supports opset
// 7 and newer ones.
const noKernel = "older than ONNX Runtime's support"

func cases() []ruleCase {
	return slices.Concat(legacyCases(), broadcastCases(), inPlaceCases(), middleCases(), normCases(), resizeCases(),
		softmaxCases(), axesCases(), newCases())
}

func legacyCases() []ruleCase {
	return []ruleCase{
		{name: "whole p", op: "GlobalLpPool", from: 1, to: 2, in: []operandCase{x(1, 2, 3, 3)},
			attrs: []*ir.Attr{ir.FloatAttr("p", 3)},
			want:  "y = GlobalLpPool<p=3>(x)", fails: noKernel},
		{name: "half p", op: "GlobalLpPool", from: 1, to: 2, in: []operandCase{x(1, 2, 3, 3)},
			attrs:   []*ir.Attr{ir.FloatAttr("p", 2.5)},
			refused: "p is not an integer"},
		{name: "default p", op: "LpPool", from: 1, to: 2, in: []operandCase{x(1, 2, 3, 3)},
			attrs: []*ir.Attr{ir.IntsAttr("kernel_shape", 2, 2)},
			want:  "y = LpPool<kernel_shape=[2 2]>(x)", fails: noKernel},
		{name: "paddings", op: "Pad", from: 1, to: 2, in: []operandCase{x(2)},
			attrs: []*ir.Attr{ir.IntsAttr("paddings", 1, 1)},
			want:  "y = Pad<pads=[1 1]>(x)", fails: noKernel},
		{name: "sizes as input", op: "Split", from: 1, to: 2, in: []operandCase{x(4), constant(ir.Float, []int64{2}, 2, 2)},
			outputs: []string{"y", "z"}, refused: "its sizes are an input"},
		{name: "sizes as attribute", op: "Split", from: 1, to: 2, in: []operandCase{x(4)},
			attrs:   []*ir.Attr{ir.IntsAttr("split", 1, 3)},
			outputs: []string{"y", "z"}, want: "y, z = Split<split=[1 3]>(x)", fails: noKernel},
		{name: "default axis", op: "Concat", from: 1, to: 4, in: []operandCase{x(2, 3), x(2, 3)},
			want: "y = Concat<axis=1>(x, x1)", fails: noKernel},
		{name: "own axis", op: "Concat", from: 1, to: 4, in: []operandCase{x(2, 3), x(2, 3)},
			attrs: []*ir.Attr{ir.IntAttr("axis", 0)},
			want:  "y = Concat<axis=0>(x, x1)", fails: noKernel},
		{name: "shape", op: "Reshape", from: 1, to: 5, in: []operandCase{x(2, 3)},
			attrs: []*ir.Attr{ir.IntsAttr("shape", 3, 2)},
			want:  "y = Reshape(x, [3 2])", fails: noKernel},
		{name: "no shape", op: "Reshape", from: 1, to: 5, in: []operandCase{x(2, 3)}, refused: "has no attribute shape"},
		{name: "rounded constants", op: "Selu", from: 1, to: 6, in: []operandCase{x(4)},
			want: "y = Selu<alpha=1.6732 gamma=1.0507>(x)", fails: noKernel},
		{name: "own constants", op: "Selu", from: 1, to: 6, in: []operandCase{x(4)},
			attrs: []*ir.Attr{ir.FloatAttr("alpha", 2), ir.FloatAttr("gamma", 3)},
			want:  "y = Selu<alpha=2 gamma=3>(x)", fails: noKernel},
		{name: "type by name", op: "Cast", from: 1, to: 6, in: []operandCase{x(2)},
			attrs: []*ir.Attr{ir.StringAttr("to", "FLOAT16")},
			want:  "y = Cast<to=10>(x)", fails: noKernel},
		{name: "no type", op: "Cast", from: 1, to: 6, in: []operandCase{x(2)},
			attrs:   []*ir.Attr{ir.StringAttr("to", "float")},
			refused: "attribute to names no type"},
		{name: "two inputs", op: "Tile", from: 1, to: 6,
			in:      []operandCase{x(2), constant(ir.Float, nil, 2), constant(ir.Float, nil, 0)},
			refused: "tiles and axis were two inputs"},
		{name: "one for each axis", op: "Upsample", from: 1, to: 7, in: []operandCase{x(1, 1, 2, 2)},
			attrs: []*ir.Attr{ir.FloatAttr("height_scale", 2), ir.FloatAttr("width_scale", 3),
				ir.StringAttr("mode", "bilinear")},
			want: "y = Upsample<scales=[1 1 2 3] mode=linear>(x)", fails: noKernel},
		{name: "no scale", op: "Upsample", from: 1, to: 7, in: []operandCase{x(1, 1, 2, 2)},
			attrs:   []*ir.Attr{ir.FloatAttr("height_scale", 2)},
			refused: "has no height_scale or no width_scale"},
	}
}

// operands are the inputs that an operator of the first opsets needs for x.
func operands(op string) []operandCase {
	switch op {
	case "Add", "Sub", "Mul", "Div", "Max", "Mean", "Min", "Sum", "Greater", "Less", "Pow":
		return []operandCase{x(2, 3), x(2, 3)}
	case "Equal":
		return []operandCase{in(ir.Int32, 2, 3), in(ir.Int32, 2, 3)}
	case "And", "Or", "Xor":
		return []operandCase{in(ir.Bool, 2, 3), in(ir.Bool, 2, 3)}
	case "PRelu":
		return []operandCase{x(2, 3), x(1)}
	case "BatchNormalization":
		return []operandCase{x(2, 3), x(3), x(3), x(3), x(3)}
	case "InstanceNormalization":
		return []operandCase{x(2, 3, 4), x(3), x(3)}
	}
	return []operandCase{x(2, 3)}
}

func inPlaceCases() (cs []ruleCase) {
	for _, op := range inPlace {
		attrs := []*ir.Attr{ir.IntsAttr("consumed_inputs", 0)}
		want := "y = " + op + "(x)"
		switch len(operands(op)) {
		case 2:
			want = "y = " + op + "(x, x1)"
		case 3:
			want = "y = " + op + "(x, x1, x2)"
		case 5:
			want = "y = " + op + "(x, x1, x2, x3, x4)"
		}
		if op == "Selu" {
			attrs = append(attrs, ir.FloatAttr("alpha", 1), ir.FloatAttr("gamma", 1))
			want = "y = Selu<alpha=1 gamma=1>(x)"
		}
		if op == "BatchNormalization" || op == "Dropout" {
			attrs = append(attrs, ir.IntAttr("is_test", 1))
			want = strings.Replace(want, "(", "<is_test=1>(", 1)
		}
		cs = append(cs, ruleCase{name: "in place", op: op, from: 1, to: 6, in: operands(op), attrs: attrs, want: want,
			fails: noKernel})
	}
	return cs
}

func broadcastCases() []ruleCase {
	cs := []ruleCase{
		{name: "by axis", op: "Add", from: 6, to: 7, in: []operandCase{x(2, 3, 4, 5), x(3, 4)},
			attrs: []*ir.Attr{ir.IntAttr("broadcast", 1), ir.IntAttr("axis", 1)},
			want:  "t = Unsqueeze<axes=[2]>(x1)\ny = Add(x, t)", fails: noKernel},
		{name: "by axis", op: "Mul", from: 6, to: 13, in: []operandCase{x(2, 3, 4, 5), x(2)},
			attrs: []*ir.Attr{ir.IntAttr("broadcast", 1), ir.IntAttr("axis", 0)},
			want:  "t = Unsqueeze(x1, [1 2 3])\ny = Mul(x, t)", fails: noKernel},
		{name: "by axis from the back", op: "Sub", from: 6, to: 7, in: []operandCase{x(2, 3, 4), x(3, 4)},
			attrs: []*ir.Attr{ir.IntAttr("broadcast", 1), ir.IntAttr("axis", -2)},
			want:  "y = Sub(x, x1)", fails: noKernel},
		{name: "rank not known", op: "Div", from: 6, to: 7, in: []operandCase{x(2, 3, 4), bare(ir.Float, 3)},
			attrs:   []*ir.Attr{ir.IntAttr("broadcast", 1), ir.IntAttr("axis", 1)},
			refused: "attribute axis needs inputs of known rank"},
		{name: "ranks do not fit", op: "Div", from: 6, to: 7, in: []operandCase{x(2, 3), x(3, 4)},
			attrs:   []*ir.Attr{ir.IntAttr("broadcast", 1), ir.IntAttr("axis", 1)},
			refused: "attribute axis does not fit the inputs' ranks"},
		{name: "matrix", op: "Gemm", from: 6, to: 7, in: []operandCase{x(2, 3), x(3, 4), x(4)},
			attrs: []*ir.Attr{ir.IntAttr("broadcast", 1)},
			want:  "y = Gemm(x, x1, x2)", fails: noKernel},
		{name: "by channel", op: "PRelu", from: 6, to: 7, in: []operandCase{x(2, 3, 4, 5), x(3)},
			want: "t = Unsqueeze<axes=[1 2]>(x1)\ny = PRelu(x, t)", fails: noKernel},
		{name: "one for all", op: "PRelu", from: 6, to: 7, in: []operandCase{x(2, 3, 4, 5), x(1)}, want: "y = PRelu(x, x1)",
			fails: noKernel},
		{name: "slope not known", op: "PRelu", from: 6, to: 7, in: []operandCase{x(2, 3), bare(ir.Float, 3)},
			refused: "the slope's shape is not known"},
		{name: "input not known", op: "PRelu", from: 6, to: 7, in: []operandCase{bare(ir.Float, 2, 3), x(3)},
			refused: "the input's rank is not known"},
	}
	for _, op := range slices.Concat(arithmetic, compared) {
		from := int64(1)
		if slices.Contains(arithmetic, op) {
			from = 6
		}
		cs = append(cs, ruleCase{name: "last axes", op: op, from: from, to: 7, in: operands(op),
			attrs: []*ir.Attr{ir.IntAttr("broadcast", 1)},
			want:  "y = " + op + "(x, x1)", fails: noKernel})
	}
	for _, op := range recurrents {
		cs = append(cs, ruleCase{name: "sequence", op: op, from: 3, to: 7,
			in: []operandCase{x(2, 1, 3), x(1, 3, 3), x(1, 3, 3)}, attrs: []*ir.Attr{ir.IntAttr("output_sequence", 1)},
			want: "y = " + op + "(x, x1, x2)", fails: noKernel})
	}
	return cs
}

func middleCases() []ruleCase {
	clip := func(attrs ...*ir.Attr) []*ir.Attr { return attrs }
	return []ruleCase{
		{name: "all three", op: "Slice", from: 7, to: 10, in: []operandCase{x(4, 5)},
			attrs: []*ir.Attr{ir.IntsAttr("starts", 1, -3), ir.IntsAttr("ends", 3, 100), ir.IntsAttr("axes", 0, 1)},
			want:  "y = Slice(x, [1 -3], [3 100], [0 1])"},
		{name: "no axes", op: "Slice", from: 7, to: 10, in: []operandCase{x(4, 5)},
			attrs: []*ir.Attr{ir.IntsAttr("starts", 1), ir.IntsAttr("ends", -1)},
			want:  "y = Slice(x, [1], [-1])"},
		{name: "no ends", op: "Slice", from: 7, to: 10, in: []operandCase{x(4, 5)},
			attrs:   []*ir.Attr{ir.IntsAttr("starts", 1)},
			refused: "has no starts or no ends"},
		{name: "k", op: "TopK", from: 7, to: 10, in: []operandCase{x(2, 5)},
			attrs:   []*ir.Attr{ir.IntAttr("axis", 1), ir.IntAttr("k", 3)},
			outputs: []string{"y", "z"}, want: "y, z = TopK<axis=1>(x, [3])"},
		{name: "no k", op: "TopK", from: 7, to: 10, in: []operandCase{x(2, 5)}, outputs: []string{"y", "z"},
			refused: "has no attribute k"},
		{name: "both limits", op: "Clip", from: 7, to: 11, in: []operandCase{x(8)},
			attrs: clip(ir.FloatAttr("min", -0.5), ir.FloatAttr("max", 0.25)),
			want:  "y = Clip(x, {-0.5}, {0.25})"},
		{name: "one limit", op: "Clip", from: 7, to: 11, in: []operandCase{x(8)}, attrs: clip(ir.FloatAttr("max", 0.25)),
			want: "y = Clip(x, , {0.25})"},
		{name: "no limit", op: "Clip", from: 7, to: 11, in: []operandCase{x(8)}, want: "y = Clip(x)"},
		{name: "half limits", op: "Clip", from: 7, to: 11, in: []operandCase{in(ir.Float16, 8)},
			attrs: clip(ir.FloatAttr("min", 0.1)),
			want:  "t = Cast<to=10>({0.1})\ny = Clip(x, t)"},
		{name: "type not known", op: "Clip", from: 7, to: 11, in: []operandCase{bare(ir.Float, 8)},
			attrs:   clip(ir.FloatAttr("min", 0)),
			refused: "the element type of its input is not known"},
		{name: "type not known, later", op: "Clip", from: 7, to: 15, in: []operandCase{bare(ir.Float, 8)},
			attrs: clip(ir.FloatAttr("min", 0)),
			want:  "t = CastLike({0}, x)\ny = Clip(x, t)"},
		{name: "zeros", op: "Pad", from: 7, to: 11, in: []operandCase{x(2, 3)},
			attrs: []*ir.Attr{ir.IntsAttr("pads", 0, 1, 1, -1), ir.FloatAttr("value", 0)},
			want:  "y = Pad(x, [0 1 1 -1])"},
		{name: "value", op: "Pad", from: 7, to: 11, in: []operandCase{x(2, 3)},
			attrs: []*ir.Attr{ir.IntsAttr("pads", 0, 1, 1, 0), ir.FloatAttr("value", 1.5)},
			want:  "y = Pad(x, [0 1 1 0], {1.5})"},
		{name: "mirrored", op: "Pad", from: 7, to: 11, in: []operandCase{x(2, 3)},
			attrs: []*ir.Attr{ir.IntsAttr("pads", 0, 1, 0, 1), ir.StringAttr("mode", "reflect")},
			want:  "y = Pad<mode=reflect>(x, [0 1 0 1])"},
		{name: "double", op: "Pad", from: 7, to: 11, in: []operandCase{in(ir.Double, 2)},
			attrs: []*ir.Attr{ir.IntsAttr("pads", 1, 1), ir.FloatAttr("value", 0.1)},
			want:  "t = Cast<to=11>({0.1})\ny = Pad(x, [1 1], t)"},
		{name: "no pads", op: "Pad", from: 7, to: 11, in: []operandCase{x()}, want: "y = Pad(x, [])",
			fails: "pads is required"},
		{name: "renamed", op: "Scatter", from: 9, to: 11,
			in:   []operandCase{x(3, 3), constant(ir.Int64, []int64{2, 3}, 1, 0, 2, 0, 2, 1), x(2, 3)},
			want: "y = ScatterElements(x, [1 0 2 0 2 1], x1)"},
		{name: "batches", op: "Scan", from: 8, to: 9, in: []operandCase{absent(), x(2, 3)},
			refused: "its batch axis and sequence lengths are gone"},
		{name: "integers", op: "Erf", from: 9, to: 13, in: []operandCase{in(ir.Int32, 4)},
			refused: "it no longer takes elements of type int32"},
		{name: "floats", op: "Erf", from: 9, to: 13, in: []operandCase{x(4)}, want: "y = Erf(x)"},
		{name: "sizes", op: "Split", from: 7, to: 13, in: []operandCase{x(4, 2)},
			attrs: []*ir.Attr{ir.IntsAttr("split", 1, 3)}, outputs: []string{"y", "z"},
			want: "y, z = Split(x, [1 3])"},
		{name: "halves", op: "Split", from: 7, to: 13, in: []operandCase{x(4, 2)}, outputs: []string{"y", "z"},
			want: "y, z = Split(x)"},
		{name: "halves, counted", op: "Split", from: 7, to: 18, in: []operandCase{x(4, 2)}, outputs: []string{"y", "z"},
			want: "y, z = Split<num_outputs=2>(x)"},
		{name: "sizes, not counted", op: "Split", from: 13, to: 18,
			in: []operandCase{x(4, 2), constant(ir.Int64, []int64{2}, 1, 3)}, outputs: []string{"y", "z"},
			want: "y, z = Split(x, [1 3])"},
	}
}

func normCases() []ruleCase {
	five := []operandCase{x(2, 3, 4, 4), x(3), x(3), x(3), constant(ir.Float, []int64{3}, 1, 2, 3)}
	byElement := []operandCase{x(2, 3, 2), x(3, 2), x(3, 2), x(3, 2), constant(ir.Float, []int64{3, 2}, 1, 2, 3, 4, 5, 6)}
	group := func(elem ir.DType) []operandCase { return []operandCase{in(elem, 2, 4, 3), in(elem, 2), in(elem, 2)} }
	two := []*ir.Attr{ir.IntAttr("num_groups", 2)}
	return []ruleCase{
		{name: "test mode", op: "BatchNormalization", from: 6, to: 7, in: operands("BatchNormalization"),
			attrs: []*ir.Attr{ir.IntAttr("is_test", 1)},
			want:  "y = BatchNormalization(x, x1, x2, x3, x4)", fails: noKernel},
		{name: "training mode", op: "BatchNormalization", from: 6, to: 7, in: operands("BatchNormalization"),
			refused: "it runs in training mode"},
		{name: "test mode", op: "Dropout", from: 6, to: 7, in: []operandCase{x(2)},
			attrs: []*ir.Attr{ir.IntAttr("is_test", 1)},
			want:  "y = Dropout(x)", fails: noKernel},
		{name: "training mode", op: "Dropout", from: 6, to: 7, in: []operandCase{x(2)},
			attrs: []*ir.Attr{ir.IntAttr("is_test", 0)}, refused: "it runs in training mode"},
		{name: "by channel", op: "BatchNormalization", from: 7, to: 9, in: five, attrs: []*ir.Attr{ir.IntAttr("spatial", 1)},
			want: "y = BatchNormalization(x, x1, x2, x3, {1 2 3})"},
		{name: "by element", op: "BatchNormalization", from: 7, to: 9, in: byElement,
			attrs: []*ir.Attr{ir.IntAttr("spatial", 0)},
			want: "t = Flatten<axis=1>(x)\nt1 = Reshape(x1, [-1])\nt2 = Reshape(x2, [-1])\nt3 = Reshape(x3, [-1])\nt4 = " +
				"Reshape({1 2 3 4 5 6}, [-1])\n" +
				"t5 = BatchNormalization(t, t1, t2, t3, t4)\nt6 = Shape(x)\ny = Reshape(t5, t6)"},
		{name: "by element of a matrix", op: "BatchNormalization", from: 7, to: 9,
			in:    []operandCase{x(2, 3), x(3), x(3), x(3), constant(ir.Float, []int64{3}, 1, 2, 3)},
			attrs: []*ir.Attr{ir.IntAttr("spatial", 0)}, want: "y = BatchNormalization(x, x1, x2, x3, {1 2 3})"},
		{name: "training outputs", op: "BatchNormalization", from: 9, to: 14, in: five, outputs: []string{"y", "mean", "var"},
			refused: "it runs in training mode"},
		{name: "idle training outputs", op: "BatchNormalization", from: 9, to: 14, in: five,
			unused:  []string{"mean", "var", "saved_mean", "saved_var"},
			refused: "it runs in training mode"},
		{name: "one output", op: "BatchNormalization", from: 9, to: 14, in: five,
			want: "y = BatchNormalization(x, x1, x2, x3, {1 2 3})"},
		{name: "idle mask", op: "Dropout", from: 7, to: 10, in: []operandCase{x(4)}, unused: []string{"mask"},
			want: "y = Dropout(x)"},
		{name: "mask", op: "Dropout", from: 7, to: 10, in: []operandCase{x(4)}, outputs: []string{"y", "mask"},
			refused: "its mask is in use, which meant something else"},
		{name: "ratio", op: "Dropout", from: 10, to: 12, in: []operandCase{x(4)},
			attrs: []*ir.Attr{ir.FloatAttr("ratio", 0.25)}, want: "y = Dropout(x, {0.25})"},
		{name: "default ratio", op: "Dropout", from: 10, to: 12, in: []operandCase{x(4)}, unused: []string{"mask"},
			want: "y = Dropout(x)"},
		{name: "mask", op: "Dropout", from: 10, to: 12, in: []operandCase{x(4)}, outputs: []string{"y", "mask"},
			refused: "its mask is in use, which meant something else"},
		{name: "groups", op: "GroupNormalization", from: 18, to: 21, in: group(ir.Float), attrs: two,
			want: "t = Reshape(x1, [2 1])\nt1 = Expand(t, [2 2])\nt2 = Reshape(t1, [-1])\nt3 = Reshape(x2, [2 1])\nt4 = " +
				"Expand(t3, [2 2])\nt5 = Reshape(t4, [-1])\n" +
				"y = GroupNormalization<num_groups=2>(x, t2, t5)"},
		{name: "a group for each channel", op: "GroupNormalization", from: 18, to: 21,
			in: []operandCase{in(ir.Double, 2, 2, 3), in(ir.Double, 2), in(ir.Double, 2)}, attrs: two,
			want: "y = GroupNormalization<num_groups=2 stash_type=11>(x, x1, x2)"},
		{name: "channels not known", op: "GroupNormalization", from: 18, to: 21,
			in: []operandCase{bare(ir.Float, 2, 4, 3), x(2), x(2)}, attrs: two,
			refused: "the number of channels is not known"},
		{name: "uneven groups", op: "GroupNormalization", from: 18, to: 21, in: []operandCase{x(2, 3, 3), x(2), x(2)},
			attrs:   two,
			refused: "its channels are not divisible into groups of one size"},
	}
}

func resizeCases() []ruleCase {
	scales := func(s ...float64) operandCase { return constant(ir.Float, []int64{int64(len(s))}, s...) }
	image := x(1, 1, 4, 4)
	mode := func(m string) []*ir.Attr { return []*ir.Attr{ir.StringAttr("mode", m)} }
	old := &ir.Attr{Name: "scales", Type: ir.AttrFloats, Floats: []float32{1, 1, 2, 3}}
	sizes := constant(ir.Int64, []int64{4}, 1, 1, 6, 9)
	none := constant(ir.Float, []int64{0})
	shifted := func(nearest string) []*ir.Attr {
		return []*ir.Attr{ir.StringAttr("coordinate_transformation_mode", "tf_half_pixel_for_nn"),
			ir.StringAttr("nearest_mode", nearest)}
	}
	return []ruleCase{
		{name: "scales", op: "Upsample", from: 7, to: 9, in: []operandCase{image}, attrs: []*ir.Attr{old},
			want: "y = Upsample(x, {1 1 2 3})"},
		{name: "no scales", op: "Upsample", from: 7, to: 9, in: []operandCase{image}, refused: "has no attribute scales"},
		{name: "renamed", op: "Upsample", from: 9, to: 10, in: []operandCase{image, scales(1, 1, 2, 3)},
			attrs: mode("bilinear"),
			want:  "y = Resize<mode=linear>(x, {1 1 2 3})", fails: "an unofficial mode"},
		{name: "nearest", op: "Upsample", from: 7, to: 13, in: []operandCase{image}, attrs: []*ir.Attr{old},
			want: "y = Resize<nearest_mode=floor coordinate_transformation_mode=asymmetric>(x, , {1 1 2 3})"},
		{name: "linear", op: "Upsample", from: 7, to: 13, in: []operandCase{image},
			attrs: []*ir.Attr{old, ir.StringAttr("mode", "linear")},
			want:  "y = Resize<mode=linear coordinate_transformation_mode=asymmetric>(x, , {1 1 2 3})"},
		{name: "scales not constant", op: "Upsample", from: 9, to: 11, in: []operandCase{image, x(4)},
			want: "y = Resize<nearest_mode=floor coordinate_transformation_mode=asymmetric>(x, {}, x1)", fails: "random scales"},
		{name: "larger", op: "Resize", from: 10, to: 11, in: []operandCase{image, scales(1, 1, 1.5, 2.6)},
			want: "y = Resize<nearest_mode=floor coordinate_transformation_mode=asymmetric>(x, {}, {1 1 1.5 2.6})"},
		{name: "smaller", op: "Resize", from: 10, to: 11, in: []operandCase{x(1, 1, 7, 8), scales(1, 1, 0.6, 0.3)},
			want: "y = Resize<nearest_mode=ceil coordinate_transformation_mode=asymmetric>(x, {}, {1 1 0.6 0.3})"},
		{name: "smaller, linear", op: "Resize", from: 10, to: 11, in: []operandCase{x(1, 1, 7, 8), scales(1, 1, 0.6, 0.3)},
			attrs: mode("linear"),
			want:  "y = Resize<mode=linear coordinate_transformation_mode=asymmetric>(x, {}, {1 1 0.6 0.3})"},
		{name: "larger and smaller", op: "Resize", from: 10, to: 11, in: []operandCase{image, scales(1, 1, 2, 0.5)},
			refused: "it enlarges one axis and shrinks another, which round differently"},
		{name: "scales not constant", op: "Resize", from: 10, to: 11, in: []operandCase{image, x(4)},
			refused: "its scales are not constant, and enlarging rounds another way than shrinking"},
		{name: "sizes", op: "Resize", from: 11, to: 13, in: []operandCase{image, none, none, sizes},
			want: "y = Resize(x, {}, , [1 1 6 9])"},
		{name: "no sizes", op: "Resize", from: 11, to: 13, in: []operandCase{image, none, scales(1, 1, 2, 2)},
			want: "y = Resize(x, {}, {1 1 2 2})"},
		{name: "shifted", op: "Resize", from: 11, to: 13, in: []operandCase{image, none, scales(1, 1, 2, 1.5)},
			attrs: shifted("floor"),
			want:  "y = Resize<coordinate_transformation_mode=half_pixel nearest_mode=round_prefer_ceil>(x, {}, {1 1 2 1.5})"},
		{name: "shifted and smaller", op: "Resize", from: 11, to: 13,
			in: []operandCase{x(1, 1, 9, 8), none, scales(1, 1, 0.6, 0.5)}, attrs: shifted("floor"),
			want: "y = Resize<coordinate_transformation_mode=half_pixel nearest_mode=round_prefer_ceil>(x, {}, {1 1 0.6 0.5})"},
		{name: "shifted up", op: "Resize", from: 11, to: 13, in: []operandCase{image, none, scales(1, 1, 2, 2)},
			attrs:   shifted("ceil"),
			refused: "coordinate_transformation_mode tf_half_pixel_for_nn was removed, and is equal to no other one with these modes"},
	}
}

func softmaxCases() (cs []ruleCase) {
	axis := func(a int64) []*ir.Attr { return []*ir.Attr{ir.IntAttr("axis", a)} }
	for _, op := range coerced {
		cs = append(cs,
			ruleCase{name: "matrix", op: op, from: 7, to: 13, in: []operandCase{x(2, 3)}, want: "y = " + op + "(x)"},
			ruleCase{name: "matrix as a whole", op: op, from: 7, to: 13, in: []operandCase{x(2, 3)}, attrs: axis(0),
				want: "t = Flatten<axis=0>(x)\nt1 = " + op + "(t)\nt2 = Shape(x)\ny = Reshape(t1, t2)"},
			ruleCase{name: "two axes", op: op, from: 7, to: 13, in: []operandCase{x(2, 3, 4)},
				want: "t = Flatten<axis=1>(x)\nt1 = " + op + "(t)\nt2 = Shape(x)\ny = Reshape(t1, t2)"},
			ruleCase{name: "two axes, later", op: op, from: 7, to: 14, in: []operandCase{x(2, 3, 4)},
				want: "t = Flatten<axis=1>(x)\nt1 = " + op + "(t)\nt2 = Shape(x)\ny = Reshape<allowzero=1>(t1, t2)"},
			ruleCase{name: "one wide axis", op: op, from: 7, to: 13, in: []operandCase{x(2, 3, 1, 1)},
				want: "y = " + op + "<axis=1>(x)"},
			ruleCase{name: "last axis", op: op, from: 7, to: 13, in: []operandCase{x(2, 3, 4)}, attrs: axis(2),
				want: "y = " + op + "<axis=2>(x)"},
			ruleCase{name: "last axis from the back", op: op, from: 11, to: 13, in: []operandCase{bare(ir.Float, 2, 3, 4)},
				attrs: axis(-1), want: "y = " + op + "<axis=-1>(x)"},
			ruleCase{name: "two axes from the back", op: op, from: 11, to: 13, in: []operandCase{x(2, 3, 4)}, attrs: axis(-2),
				want: "t = Flatten<axis=-2>(x)\nt1 = " + op + "(t)\nt2 = Shape(x)\ny = Reshape(t1, t2)"},
			ruleCase{name: "rank not known", op: op, from: 7, to: 13, in: []operandCase{bare(ir.Float, 2, 3, 4)},
				want: "t = Flatten<axis=1>(x)\nt1 = " + op + "(t)\nt2 = Shape(x)\ny = Reshape(t1, t2)"},
		)
	}
	return cs
}

func axesCases() (cs []ruleCase) {
	add := func(op string, to int64, shape operandCase) {
		cs = append(cs, ruleCase{name: "axes", op: op, from: 7, to: to, in: []operandCase{shape},
			attrs: []*ir.Attr{ir.IntsAttr("axes", 1)},
			want:  "y = " + op + "(x, [1])"})
	}
	add("Squeeze", 13, x(2, 1, 3))
	add("Unsqueeze", 13, x(2, 3))
	cs = append(cs, ruleCase{name: "no axes", op: "Squeeze", from: 7, to: 13, in: []operandCase{x(2, 1, 3)},
		want: "y = Squeeze(x)"})
	for _, op := range slices.Concat(reductions, []string{"ReduceSum"}) {
		to := int64(18)
		if op == "ReduceSum" {
			to = 13
		}
		add(op, to, x(2, 3, 4))
		cs = append(cs, ruleCase{name: "all axes", op: op, from: 7, to: to, in: []operandCase{x(2, 3, 4)},
			attrs: []*ir.Attr{ir.IntAttr("keepdims", 0)},
			want:  "y = " + op + "<keepdims=0>(x)"})
	}
	for _, op := range []string{"ReduceLogSum", "ReduceLogSumExp"} {
		cs = append(cs,
			ruleCase{name: "floats", op: op, from: 18, to: 28, in: []operandCase{x(2, 3)}, want: "y = " + op + "(x)"},
			ruleCase{name: "integers", op: op, from: 18, to: 28, in: []operandCase{in(ir.Int32, 2, 3)},
				refused: "it no longer takes elements of type int32"})
	}
	return cs
}

func newCases() (cs []ruleCase) {
	roi := []operandCase{x(1, 1, 6, 6), constant(ir.Float, []int64{1, 4}, 0.5, 0.5, 4, 4),
		constant(ir.Int64, []int64{1}, 0)}
	grid := []operandCase{x(1, 1, 4, 4), x(1, 3, 3, 2)}
	cs = append(cs,
		ruleCase{name: "unshifted", op: "RoiAlign", from: 10, to: 16, in: roi,
			attrs: []*ir.Attr{ir.IntAttr("output_height", 2), ir.IntAttr("output_width", 2)},
			want: "y = RoiAlign<output_height=2 output_width=2 coordinate_transformation_mode=output_half_pixel>(x, {0.5 0.5 " +
				"4 4}, [0])", newest: 21},
		ruleCase{name: "default axis", op: "DFT", from: 17, to: 20, in: []operandCase{x(1, 4, 5, 1)},
			want: "y = DFT(x, , [1])"},
		ruleCase{name: "own axis", op: "DFT", from: 17, to: 20, in: []operandCase{x(1, 4, 5, 1)},
			attrs: []*ir.Attr{ir.IntAttr("axis", 2)}, want: "y = DFT(x, , [2])"},
		ruleCase{name: "default mode", op: "GridSample", from: 16, to: 20, in: grid, want: "y = GridSample(x, x1)"},
	)
	for _, mode := range [][2]string{{"bilinear", ""}, {"bicubic", "<mode=cubic>"}, {"nearest", "<mode=nearest>"}} {
		cs = append(cs, ruleCase{name: mode[0], op: "GridSample", from: 16, to: 20, in: grid,
			attrs: []*ir.Attr{ir.StringAttr("mode", mode[0])},
			want:  "y = GridSample" + mode[1] + "(x, x1)"})
	}
	for _, op := range []string{"AveragePool", "MaxPool"} {
		pool := func(ceil int64, stride, end int64) []*ir.Attr {
			return []*ir.Attr{ir.IntAttr("ceil_mode", ceil), ir.IntsAttr("kernel_shape", 2), ir.IntsAttr("strides", stride),
				ir.IntsAttr("pads", 0, end)}
		}
		text := func(ceil, stride, end string) string {
			return "y = " + op + "<ceil_mode=" + ceil + " kernel_shape=[2] strides=[" + stride + "] pads=[0 " + end + "]>(x)"
		}
		cs = append(cs,
			ruleCase{name: "rounded down", op: op, from: 12, to: 22, in: []operandCase{x(1, 1, 5)}, attrs: pool(0, 3, 1),
				want: text("0", "3", "1")},
			ruleCase{name: "rounded up", op: op, from: 12, to: 22, in: []operandCase{x(1, 1, 5)}, attrs: pool(1, 2, 0),
				want: text("1", "2", "0")},
			ruleCase{name: "window in the padding", op: op, from: 12, to: 22, in: []operandCase{x(1, 1, 5)},
				attrs:   pool(1, 2, 1),
				refused: "ceil_mode lets a window start in the padding, where it is left out now"})
	}
	return cs
}
