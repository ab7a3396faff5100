package opset

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A shapeCase is one operator of opset 13 and the shape of its first output, ? for
// sizes that are not known and nothing for a rank that is not.
type shapeCase struct {
	op    string
	in    []operandCase
	attrs []*ir.Attr
	want  string
}

func list(is ...float64) operandCase {
	if is == nil {
		is = []float64{}
	}
	return constant(ir.Int64, []int64{int64(len(is))}, is...)
}

func shapeText(v *ir.Value) string {
	shape, ok := Shape(v)
	if !ok {
		return ""
	}
	var dims []string
	for _, d := range shape {
		switch {
		case d.Param != "":
			dims = append(dims, d.Param)
		case d.Known():
			dims = append(dims, fmt.Sprint(d.N))
		default:
			dims = append(dims, "?")
		}
	}
	return "[" + strings.Join(dims, " ") + "]"
}

func TestShapes(t *testing.T) {
	is := func(name string, is ...int64) []*ir.Attr { return []*ir.Attr{ir.IntsAttr(name, is...)} }
	i := func(name string, i int64) []*ir.Attr { return []*ir.Attr{ir.IntAttr(name, i)} }
	parameter := []*ir.Attr{{Name: "axis", Type: ir.AttrInt, Ref: "axis"}}
	for _, c := range []shapeCase{
		{"Slice", []operandCase{x(10), list(2), list(7)}, nil, "[5]"},
		{"Slice", []operandCase{x(10), list(-3), list(100)}, nil, "[3]"},
		{"Slice", []operandCase{x(10), list(8), list(2)}, nil, "[0]"},
		{"Slice", []operandCase{x(10), list(0), list(10), list(0), list(3)}, nil, "[4]"},
		{"Slice", []operandCase{x(10), list(9), list(-100), list(0), list(-3)}, nil, "[4]"},
		{"Slice", []operandCase{x(10), list(-100), list(5), list(0), list(-1)}, nil, "[?]"},
		{"Slice", []operandCase{x(-1, 10), list(0, 1), list(5, 3)}, nil, "[? 2]"},
		{"Slice", []operandCase{x(10, 4), list(1), list(3), in(ir.Int64, 1)}, nil, "[? ?]"},
		{"Slice", []operandCase{x(10), list(1), list(3), list(1)}, nil, ""},
		{"Gather", []operandCase{x(5, 6), list(1, 2, 3)}, i("axis", -1), "[5 3]"},
		{"Gather", []operandCase{x(5, 6), constant(ir.Int64, nil, 1)}, nil, "[6]"},
		{"Gather", []operandCase{x(5, 6), list(1)}, i("axis", 2), ""},
		{"Gather", []operandCase{x(5, 6), list(1)}, parameter, ""},
		{"Concat", []operandCase{x(2, 3), x(2, 4)}, i("axis", 1), "[2 7]"},
		{"Concat", []operandCase{x(2, 3), x(2, -1)}, i("axis", -1), "[2 ?]"},
		{"Concat", []operandCase{bare(ir.Float), x(2, 3)}, i("axis", 0), "[? 3]"},
		{"Concat", []operandCase{x(2, 3)}, parameter, "[? ?]"},
		{"Concat", []operandCase{bare(ir.Float)}, i("axis", 0), ""},
		{"Reshape", []operandCase{x(2, 3, 4), list(0, -1)}, nil, "[2 12]"},
		{"Reshape", []operandCase{x(-1, 3, 4), list(0, 12)}, nil, "[? 12]"},
		{"Reshape", []operandCase{x(-1, 3, 4), list(-1, 12)}, nil, "[? 12]"},
		{"Reshape", []operandCase{x(1<<40, 1<<40), list(-1, 3)}, nil, "[? 3]"},
		{"Reshape", []operandCase{x(2, 3), in(ir.Int64, 3)}, nil, "[? ? ?]"},
		{"Reshape", []operandCase{x(2, 3), in(ir.Int64, -1)}, nil, ""},
		{"Reshape", []operandCase{x(1), list()}, nil, "[]"},
		{"Squeeze", []operandCase{x(2, 1, 3)}, nil, "[2 3]"},
		{"Squeeze", []operandCase{x(-1, 1, 3)}, nil, ""},
		{"Squeeze", []operandCase{x(-1, 1, 3), list(-2)}, nil, "[? 3]"},
		{"Squeeze", []operandCase{x(-1, 1, 3), in(ir.Int64, 1)}, nil, "[? ?]"},
		{"Squeeze", []operandCase{x(2, 1), list(5)}, nil, ""},
		{"Unsqueeze", []operandCase{x(2, 3), list(0, -1)}, nil, "[1 2 3 1]"},
		{"Unsqueeze", []operandCase{x(2, 3), in(ir.Int64, 1)}, nil, "[? ? ?]"},
		{"Unsqueeze", []operandCase{x(2, 3), in(ir.Int64, 1<<40)}, nil, ""},
		{"Unsqueeze", []operandCase{x(2, 3), list(0, 0)}, nil, ""},
		{"Unsqueeze", []operandCase{x(2, 3), in(ir.Int64, -1)}, nil, ""},
		{"ReduceSum", []operandCase{x(2, 3, 4), list(-1)}, nil, "[2 3 1]"},
		{"ReduceSum", []operandCase{x(2, 3, 4), list(1)}, i("keepdims", 0), "[2 4]"},
		{"ReduceSum", []operandCase{x(2, 3, 4)}, i("keepdims", 0), "[]"},
		{"ReduceSum", []operandCase{x(2, 3, 4)}, nil, "[1 1 1]"},
		{"ReduceSum", []operandCase{x(2, 3, 4), list()}, i("noop_with_empty_axes", 1), "[2 3 4]"},
		{"ReduceSum", []operandCase{x(2, 3, 4), in(ir.Int64, -1)}, i("keepdims", 0), ""},
		{"ReduceSum", []operandCase{x(2, 3, 4), in(ir.Int64, -1)}, nil, "[? ? ?]"},
		{"ReduceSum", []operandCase{x(2, 3, 4), in(ir.Int64, 2)}, i("keepdims", 0), "[?]"},
		{"ReduceMax", []operandCase{x(2, 3, 4)}, is("axes", 0), "[1 3 4]"},
		{"ArgMax", []operandCase{x(2, 3, 4)}, i("axis", 1), "[2 1 4]"},
		{"ArgMax", []operandCase{x(2, 3, 4)}, parameter, ""},
		{"MatMul", []operandCase{x(5, 1, 2, 3), x(4, 3, 6)}, nil, "[5 4 2 6]"},
		{"MatMul", []operandCase{x(3), x(4, 3, 6)}, nil, "[? ?]"},
		{"MatMul", []operandCase{x(3), x(3)}, nil, "[]"},
		{"MatMul", []operandCase{bare(ir.Float), x(3, 3)}, nil, ""},
		{"Gemm", []operandCase{x(3, 2), x(4, 3)}, []*ir.Attr{ir.IntAttr("transA", 1), ir.IntAttr("transB", 1)}, "[2 4]"},
		{"Gemm", []operandCase{bare(ir.Float), x(3, 4)}, nil, "[? 4]"},
		{"Transpose", []operandCase{x(2, 3, 4)}, nil, "[4 3 2]"},
		{"Transpose", []operandCase{x(2, 3, 4)}, is("perm", 0, 2, 1), "[2 4 3]"},
		{"Transpose", []operandCase{x(2, 3)}, is("perm", 0, 7), ""},
		{"Add", []operandCase{x(-1, 3), x(3)}, nil, "[? 3]"},
		{"Add", []operandCase{x(-1), x(1)}, nil, "[?]"},
		{"Add", []operandCase{x(1), x(-1)}, nil, "[?]"},
		{"Add", []operandCase{x(4, 1), x(1, 5)}, nil, "[4 5]"},
		{"Add", []operandCase{x(4), bare(ir.Float)}, nil, ""},
		{"Expand", []operandCase{x(3, 1), list(2, 1, 6)}, nil, "[2 3 6]"},
		{"Expand", []operandCase{x(3, 1), in(ir.Int64, 3)}, nil, "[? ? ?]"},
		{"Expand", []operandCase{x(3, 1), in(ir.Int64, -1)}, nil, ""},
		{"ConstantOfShape", []operandCase{list(2, 3)}, nil, "[2 3]"},
		{"ConstantOfShape", []operandCase{in(ir.Int64, 2)}, nil, "[? ?]"},
		{"Conv", []operandCase{x(1, 3, 8, 8), x(16, 3, 3, 3)}, nil, "[1 16 6 6]"},
		{"Conv", []operandCase{x(-1, 3, 8, -1), x(16, 3, 3, 3)}, is("pads", 1, 1, 0, 0), "[? 16 7 ?]"},
		{"Conv", []operandCase{x(1, 3, 8), x(16, 3, 3)}, append(is("strides", 2), ir.StringAttr("auto_pad", "SAME_UPPER")),
			"[1 16 4]"},
		{"Conv", []operandCase{x(1, 3, 8), x(16, 3, 3)}, is("dilations", 4), "[1 16 ?]"},
		{"Conv", []operandCase{x(1, 3, 8), x(16, 3, 3)}, is("strides", 0), "[1 16 ?]"},
		{"MaxPool", []operandCase{x(1, 3, 9)}, append(is("kernel_shape", 2), is("strides", 2)...), "[1 3 4]"},
		{"MaxPool", []operandCase{x(1, 3, 9)}, append(is("kernel_shape", 2), ir.IntAttr("ceil_mode", 1)), "[1 3 ?]"},
		{"GlobalAveragePool", []operandCase{x(1, 3, -1, 9)}, nil, "[1 3 1 1]"},
		{"Conv", []operandCase{bare(ir.Float), x(16, 3, 3, 3)}, nil, "[? 16 ? ?]"},
		{"Conv", []operandCase{x(8), x(16, 3, 3, 3)}, nil, ""},
		{"ConvTranspose", []operandCase{x(1, 4, 8), x(4)}, nil, ""},
		{"ConvTranspose", []operandCase{x(1, 4, 8), x(4, 3, 2)}, i("group", 2), "[1 6 ?]"},
		{"MaxPool", []operandCase{x(1, 3, 8)}, nil, "[1 3 ?]"},
		{"MaxPool", []operandCase{x(3)}, nil, ""},
		{"Shape", []operandCase{x(2, 3, 4)}, nil, "[3]"},
		{"Shape", []operandCase{bare(ir.Float)}, nil, "[?]"},
		{"OneHot", []operandCase{in(ir.Int64, 2)}, nil, "[? ?]"},
		{"LSTM", []operandCase{bare(ir.Float)}, nil, "[? ? ? ?]"},
		{"Loop", []operandCase{x(2)}, nil, ""},
		{"Squeeze", []operandCase{x(2, 1)}, []*ir.Attr{{Name: "axes", Type: ir.AttrInts, Ref: "axes"}}, ""},
	} {
		r := ruleCase{op: c.op, from: 13, in: c.in, attrs: c.attrs}
		m := r.model()
		r.strip(m)
		y := m.Graph.Outputs[0]
		y.Type = nil
		if got := shapeText(y); got != c.want {
			t.Errorf("%s %v %s: %q, want %q", c.op, c.in, attrText(y.Producer()), got, c.want)
		}
	}
}

func TestElems(t *testing.T) {
	half, bytes := in(ir.Float16, 2), in(ir.Int8, 2)
	for _, c := range []struct {
		op    string
		in    []operandCase
		attrs []*ir.Attr
		want  ir.DType
	}{
		{"Relu", []operandCase{half}, nil, ir.Float16},
		{"Relu", []operandCase{bare(ir.Float)}, nil, ir.Undefined},
		{"Add", []operandCase{bare(ir.Float), half}, nil, ir.Float16},
		{"Equal", []operandCase{half, half}, nil, ir.Bool},
		{"Where", []operandCase{in(ir.Bool, 2), half, half}, nil, ir.Float16},
		{"Cast", []operandCase{half}, []*ir.Attr{ir.IntAttr("to", 11)}, ir.Double},
		{"Cast", []operandCase{half}, []*ir.Attr{ir.StringAttr("to", "INT32")}, ir.Int32},
		{"Cast", []operandCase{half}, nil, ir.Undefined},
		{"ConstantOfShape", []operandCase{list(2)}, nil, ir.Float},
		{"ConstantOfShape", []operandCase{list(2)}, []*ir.Attr{ir.TensorAttr("value", intTensor([]int64{1}, []int64{7}))},
			ir.Int64},
		{"ConstantOfShape", []operandCase{list(2)}, []*ir.Attr{{Name: "value", Type: ir.AttrTensor, Ref: "value"}},
			ir.Undefined},
		{"DequantizeLinear", []operandCase{bytes, half}, nil, ir.Float16},
		{"DequantizeLinear", []operandCase{bytes, half}, []*ir.Attr{ir.IntAttr("output_dtype", 1)}, ir.Float},
		{"DequantizeLinear", []operandCase{bytes, half}, []*ir.Attr{{Name: "output_dtype", Type: ir.AttrInt, Ref: "t"}},
			ir.Undefined},
		{"QuantizeLinear", []operandCase{half, half}, nil, ir.Uint8},
		{"QuantizeLinear", []operandCase{half, half, bytes}, nil, ir.Int8},
		{"QuantizeLinear", []operandCase{half, half}, []*ir.Attr{ir.IntAttr("output_dtype", 3)}, ir.Int8},
		{"Loop", []operandCase{half}, nil, ir.Undefined},
	} {
		r := ruleCase{op: c.op, from: 13, in: c.in, attrs: c.attrs}
		m := r.model()
		r.strip(m)
		y := m.Graph.Outputs[0]
		y.Type = nil
		if got := Elem(y); got != c.want {
			t.Errorf("%s %v %s: %v, want %v", c.op, c.in, attrText(y.Producer()), got, c.want)
		}
	}
}

// What the model states comes first, and a rank of its own is no shape.
func TestStatedTypesComeFirst(t *testing.T) {
	m := chain(op("Relu"))
	y := m.Graph.Outputs[0]
	y.Type = &ir.Type{Elem: ir.Float16, Shape: []ir.Dim{{Param: "batch"}, {N: -1}}}
	if got := shapeText(y); got != "[batch ?]" || Elem(y) != ir.Float16 {
		t.Errorf("%s of %v", got, Elem(y))
	}
	y.Type.Shape = nil
	if got := shapeText(y); got != "[2 1 1 3]" {
		t.Errorf("without a stated rank: %s", got)
	}
}

// One query visits a bounded number of values, however long the chain is.
func TestInferenceIsBounded(t *testing.T) {
	ops := make([]*ir.Node, visits+1)
	for i := range ops {
		ops[i] = op("Relu")
	}
	m := chain(ops...)
	y := m.Graph.Outputs[0]
	if got := shapeText(y); got != "" {
		t.Errorf("%s at the end of %d nodes", got, len(ops))
	}
	before := y.Producer().Input(0)
	if got := shapeText(before); got != "[2 1 1 3]" {
		t.Errorf("%q one node nearer", got)
	}
}

func TestInferenceEndsOnACircle(t *testing.T) {
	m := chain(op("Relu"), op("Add"))
	add := m.Graph.Outputs[0].Producer()
	add.Prev().SetInput(0, add.Outputs[0])
	if got := shapeText(add.Outputs[0]); got != "" || Elem(add.Outputs[0]) != ir.Undefined {
		t.Errorf("%s of a value that depends on itself", got)
	}
}

// Shapes lie in files too, and may be cut off there.
func TestShapesAreReadFromFiles(t *testing.T) {
	file := strings.NewReader("\x02\x00\x00\x00\x03\x00\x00\x00")
	for _, c := range []struct {
		r    io.ReaderAt
		want string
	}{{file, "[2 3]"}, {strings.NewReader("\x02"), "[? ?]"}} {
		m := chain()
		shape := &ir.Tensor{Spec: ir.Spec{DType: ir.Int32, Shape: []int64{2}}, Source: ir.Span{R: c.r}}
		y := m.Graph.Insert(nil, "ConstantOfShape", []*ir.Value{m.Graph.AddConst("s", shape)})
		if got := shapeText(y); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
