package partition

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// dynamic is the length of axes that are longer in the wider run.
const dynamic = 10

// A given is an input: an activation of a shape, or a constant of integers. The zero value is an input that is left
// out.
type given struct {
	shape []int64
	ints  []int64
}

func act(shape ...int64) given           { return given{shape: shape} }
func ints(list ...int64) given           { return given{ints: list} }
func at(axis int, blocks ...int64) split { return split{axis, blocks} }

// ruleOf is the rule of a node of op with these inputs and outputs. Outputs with a division are read.
func ruleOf(version int64, op string, ins []given, outs [][]int64, divided []split, attrs ...*ir.Attr) *rule {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: version}, {Domain: "com.microsoft", Version: 1}}
	g, t := m.Graph, &types{sizes: map[string]ir.Spec{}, wider: map[string]ir.Spec{}}
	sized := func(v *ir.Value, shape []int64) {
		wide := slices.Clone(shape)
		for i := range wide {
			if wide[i] == dynamic {
				wide[i] = 2 * dynamic
			}
		}
		t.sizes[v.Name], t.wider[v.Name] = ir.Spec{DType: ir.Float, Shape: shape}, ir.Spec{DType: ir.Float, Shape: wide}
	}
	var inputs []*ir.Value
	for i, in := range ins {
		switch {
		case in.shape != nil:
			v := g.AddValue(fmt.Sprint("in", i))
			sized(v, in.shape)
			inputs = append(inputs, v)
		case in.ints != nil:
			inputs = append(inputs, g.AddConst(fmt.Sprint("in", i),
				&ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(in.ints))}}, Source: ir.Ints(in.ints...)}))
		default:
			inputs = append(inputs, nil)
		}
	}
	made := g.InsertN(nil, op, len(outs), inputs, attrs...)
	for i, v := range made {
		sized(v, outs[i])
		if len(divided[i].blocks) > 0 || i == 0 {
			g.Insert(nil, "Relu", []*ir.Value{v})
		}
	}
	n := made[0].Producer()
	return &rule{division: &division{cutter: &cutter{types: t}}, n: n, outs: slices.Clone(divided),
		ins: make([]split, len(inputs))}
}

// Each rule divides the inputs that a device needs parts of for its part of the outputs, and refuses where it would
// need more than a part.
func TestRules(t *testing.T) {
	i, is := ir.IntAttr, ir.IntsAttr
	type A = []*ir.Attr
	gqa := func(more ...given) []given {
		return append([]given{act(1, 5, 16), act(1, 5, 8), act(1, 5, 8), act(1, 2, 7, 4), act(1, 2, 7, 4)}, more...)
	}
	heads := A{i("num_heads", 4), i("kv_num_heads", 2)}
	present := [][]int64{{1, 5, 16}, {1, 2, 8, 4}, {1, 2, 8, 4}}
	var none given
	first := func(s split, n int) []split { return append([]split{s}, make([]split, n-1)...) }
	for _, c := range []struct {
		version int64
		op      string
		attrs   A
		ins     []given
		outs    [][]int64
		divided []split
		want    []split // of inputs; nil if the rule refuses
		lengths []int64
	}{
		{17, "Relu", nil, []given{act(2, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)}, []split{at(1, 6)}, nil},
		{17, "Relu", nil, []given{act(2, 6)}, [][]int64{{2, 6}}, []split{at(1)}, nil, nil}, // whole
		{17, "NonZero", nil, []given{act(2, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)}, nil, nil},

		{17, "Add", nil, []given{act(2, 3, 6), act(6)}, [][]int64{{2, 3, 6}}, []split{at(2, 2, 4)},
			[]split{at(2, 2, 4), at(0, 2, 4)}, nil},
		{17, "Add", nil, []given{act(2, 3, 6), act(1)}, [][]int64{{2, 3, 6}}, []split{at(2, 6)}, []split{at(2, 6), {}}, nil},
		{17, "Add", nil, []given{act(2, 3, 6), act(3, 1)}, [][]int64{{2, 3, 6}}, []split{at(0, 2)}, []split{at(0, 2), {}},
			nil},
		{17, "Add", nil, []given{act(2, 3, 6), act(3, 1)}, [][]int64{{2, 3, 6}}, []split{at(1, 3)},
			[]split{at(1, 3), at(0, 3)}, nil},
		{17, "Add", nil, []given{act(2, dynamic), act(1)}, [][]int64{{2, dynamic}}, []split{at(1, dynamic)}, nil, nil},
		{17, "Add", nil, []given{act(2, 6), act(2, 6)}, [][]int64{{2, 6}}, []split{at(0)}, nil, nil}, // whole
		{17, "Clip", nil, []given{act(2, 6), {}, act(1)}, [][]int64{{2, 6}}, []split{at(1, 6)}, []split{at(1, 6), {}, {}},
			nil},

		{13, "Softmax", nil, []given{act(2, 3, 6)}, [][]int64{{2, 3, 6}}, []split{at(2, 6)}, nil, nil},
		{13, "Softmax", nil, []given{act(2, 3, 6)}, [][]int64{{2, 3, 6}}, []split{at(1, 3)}, []split{at(1, 3)}, nil},
		{13, "Softmax", A{i("axis", 0)}, []given{act(2, 3, 6)}, [][]int64{{2, 3, 6}}, []split{at(2, 6)}, []split{at(2, 6)},
			nil},
		{12, "Softmax", nil, []given{act(2, 3, 6)}, [][]int64{{2, 3, 6}}, []split{at(0, 2)}, []split{at(0, 2)}, nil},
		{12, "Softmax", nil, []given{act(2, 3, 6)}, [][]int64{{2, 3, 6}}, []split{at(1, 3)}, nil, nil},
		{12, "Softmax", A{i("axis", 2)}, []given{act(2, 3, 6)}, [][]int64{{2, 3, 6}}, []split{at(1, 3)}, []split{at(1, 3)},
			nil},
		{17, "LayerNormalization", nil, []given{act(2, 3, 6), act(6)}, [][]int64{{2, 3, 6}}, []split{at(2, 6)}, nil, nil},
		{17, "LayerNormalization", nil, []given{act(2, 3, 6), act(6)}, [][]int64{{2, 3, 6}}, []split{at(1, 3)},
			[]split{at(1, 3), {}}, nil},
		{17, "LayerNormalization", A{i("axis", 1)}, []given{act(2, 3, 6), act(6)}, [][]int64{{2, 3, 6}}, []split{at(1, 3)},
			nil, nil},

		{17, "Transpose", A{is("perm", 0, 2, 1, 3)}, []given{act(2, 5, 4, 6)}, [][]int64{{2, 4, 5, 6}}, []split{at(1, 4)},
			[]split{at(2, 4)}, nil},
		{17, "Transpose", A{is("perm", 1, 0, 2)}, []given{act(3, 5, 4)}, [][]int64{{5, 3, 4}}, []split{at(0, 5)},
			[]split{at(1, 5)}, nil},
		{17, "Transpose", nil, []given{act(2, 5, 6)}, [][]int64{{6, 5, 2}}, []split{at(0, 6)}, []split{at(2, 6)}, nil},

		{17, "Reshape", nil, []given{act(dynamic, 3, 12), ints(0, 0, 3, 4)}, [][]int64{{dynamic, 3, 3, 4}}, []split{at(2, 3)},
			[]split{at(2, 12)}, nil},
		{17, "Reshape", nil, []given{act(2, 3, 12), ints(0, 0, 3, 4)}, [][]int64{{2, 3, 3, 4}}, []split{at(3, 4)},
			[]split{at(2, 4, 4, 4)}, nil},
		{17, "Reshape", nil, []given{act(2, 3, 3, 4), ints(0, 0, -1)}, [][]int64{{2, 3, 12}}, []split{at(2, 12)},
			[]split{at(2, 3)}, nil},
		{17, "Reshape", nil, []given{act(2, 3, 3, 4), ints(0, 0, -1)}, [][]int64{{2, 3, 12}}, []split{at(2, 4, 8)},
			[]split{at(2, 1, 2)}, nil},
		{17, "Reshape", nil, []given{act(2, 3, 3, 4), ints(0, 0, -1)}, [][]int64{{2, 3, 12}}, []split{at(2, 6, 6)}, nil, nil},
		{17, "Reshape", nil, []given{act(2, 1, 6), ints(2, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)}, []split{at(2, 6)}, nil},
		{17, "Reshape", nil, []given{act(4, 3), ints(6, 2)}, [][]int64{{6, 2}}, []split{at(0, 6)}, nil, nil},
		{17, "Reshape", nil, []given{act(4, 6), ints(6, 4)}, [][]int64{{6, 4}}, []split{at(1, 4)}, nil, nil},
		{17, "Reshape", nil, []given{act(3, 4), ints(2, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)}, nil, nil},
		{17, "Reshape", nil, []given{act(5, 6), ints(15, 2)}, [][]int64{{15, 2}}, []split{at(1, 2)}, []split{at(1, 2, 2, 2)},
			nil},
		// 0 would copy the part
		{17, "Reshape", nil, []given{act(12, 2), ints(0, 12, 2)}, [][]int64{{1, 12, 2}}, []split{at(1, 12)}, nil, nil},
		{17, "Reshape", nil, []given{act(12, 2), ints(1, 12, 2)}, [][]int64{{1, 12, 2}}, []split{at(1, 12)},
			[]split{at(0, 12), {}}, nil},
		{17, "Flatten", nil, []given{act(12, 2, 3)}, [][]int64{{12, 6}}, []split{at(1, 6)}, []split{at(1, 2)}, nil},
		{17, "Expand", nil, []given{act(6), ints(2, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)}, []split{at(0, 6), {}}, nil},
		{17, "Expand", nil, []given{act(1), ints(2, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)}, []split{{}, {}}, nil},

		{17, "Concat", A{i("axis", 1)}, []given{act(2, 3), act(2, 4)}, [][]int64{{2, 7}}, []split{at(1, 7)}, nil, nil},
		{17, "Concat", A{i("axis", -1)}, []given{act(2, 3), act(2, 4)}, [][]int64{{2, 7}}, []split{at(0, 2)},
			[]split{at(0, 2), at(0, 2)}, nil},
		{17, "Gather", nil, []given{act(8, 6), act(2, 3)}, [][]int64{{2, 3, 6}}, []split{at(2, 6)}, []split{at(1, 6), {}},
			nil},
		{17, "Gather", nil, []given{act(8, 6), act(2, 3)}, [][]int64{{2, 3, 6}}, []split{at(1, 3)}, nil, nil},
		{17, "Gather", nil, []given{act(8, 6), act(2, 3)}, [][]int64{{2, 3, 6}}, []split{at(0, 2)}, nil, nil},
		{17, "Gather", A{i("axis", 1)}, []given{act(6, 8, 5), act(2, 3)}, [][]int64{{6, 2, 3, 5}}, []split{at(0, 6)},
			[]split{at(0, 6), {}}, nil},
		{17, "Gather", A{i("axis", 1)}, []given{act(6, 8, 5), act(2, 3)}, [][]int64{{6, 2, 3, 5}}, []split{at(2, 3)}, nil,
			nil},
		{17, "Gather", A{i("axis", -2)}, []given{act(6, 8, 5), act(2, 3)}, [][]int64{{6, 2, 3, 5}}, []split{at(3, 5)},
			[]split{at(2, 5), {}}, nil},
		{17, "Gather", nil, []given{act(8, 6), {shape: []int64{}}}, [][]int64{{6}}, []split{at(0, 6)}, []split{at(1, 6), {}},
			nil},

		{17, "Slice", nil, []given{act(8, 6), ints(1), ints(3), ints(0)}, [][]int64{{2, 6}}, []split{at(1, 6)},
			[]split{at(1, 6), {}, {}, {}}, nil},
		{17, "Slice", nil, []given{act(8, 6), ints(1), ints(3), ints(-1)}, [][]int64{{8, 2}}, []split{at(1, 2)}, nil, nil},
		{17, "Slice", nil, []given{act(8, 6), ints(1), ints(3), act(1)}, [][]int64{{2, 6}}, []split{at(1, 6)}, nil, nil},
		{17, "Slice", nil, []given{act(8, 6), ints(1), ints(3)}, [][]int64{{2, 6}}, []split{at(1, 6)}, nil, nil},
		{9, "Slice", A{is("starts", 1), is("ends", 3)}, []given{act(8, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)},
			[]split{at(1, 6)}, nil},
		{9, "Slice", A{is("starts", 1), is("ends", 3)}, []given{act(8, 6)}, [][]int64{{2, 6}}, []split{at(0, 2)}, nil, nil},
		{9, "Slice", A{is("starts", 1), is("ends", 3), is("axes", 1)}, []given{act(8, 6)}, [][]int64{{8, 2}},
			[]split{at(0, 8)}, []split{at(0, 8)}, nil},
		{13, "Split", A{i("axis", 2)}, []given{act(2, 3, 12)}, [][]int64{{2, 3, 4}, {2, 3, 8}},
			[]split{at(2, 4), at(2, 4, 4)}, []split{at(2, 4, 4, 4)}, nil},
		{13, "Split", A{i("axis", -1)}, []given{act(2, 3, 12)}, [][]int64{{2, 3, 6}, {2, 3, 6}}, []split{at(1, 3), at(1, 3)},
			[]split{at(1, 3)}, nil},
		{13, "Split", A{i("axis", -1)}, []given{act(2, 3, 12)}, [][]int64{{2, 3, 6}, {2, 3, 6}},
			[]split{at(1, 3), at(1, 1, 2)}, nil, nil},
		{13, "Split", A{i("axis", -1)}, []given{act(2, 3, 12)}, [][]int64{{2, 3, 6}, {2, 3, 6}}, []split{at(1, 3), at(2, 6)},
			nil, nil},
		{13, "Split", A{i("axis", -1)}, []given{act(2, 3, 12)}, [][]int64{{2, 3, 6}, {2, 3, 6}}, []split{at(2, 6), {}}, nil,
			nil},

		{17, "ReduceMean", A{is("axes", 1)}, []given{act(2, 3, 6)}, [][]int64{{2, 1, 6}}, []split{at(2, 6)},
			[]split{at(2, 6)}, nil},
		{17, "ReduceMean", A{is("axes", 1)}, []given{act(2, 3, 6)}, [][]int64{{2, 1, 6}}, []split{at(1, 1)}, nil, nil},
		{17, "ReduceMean", A{is("axes", -2), i("keepdims", 0)}, []given{act(2, 3, 6)}, [][]int64{{2, 6}}, []split{at(1, 6)},
			[]split{at(2, 6)}, nil},
		{17, "ReduceMean", A{is("axes", 0), i("keepdims", 0)}, []given{act(2, 3, 6)}, [][]int64{{3, 6}}, []split{at(0, 3)},
			[]split{at(1, 3)}, nil},
		{17, "ReduceMean", A{is("axes", 0, 1), i("keepdims", 0)}, []given{act(2, 3, 6)}, [][]int64{{6}}, []split{at(0, 6)},
			[]split{at(2, 6)}, nil},
		{17, "ReduceMean", A{is("axes", 2), i("keepdims", 0)}, []given{act(2, 3, 6)}, [][]int64{{2, 3}}, []split{at(1, 3)},
			[]split{at(1, 3)}, nil},
		{17, "ReduceMean", nil, []given{act(2, 3, 6)}, [][]int64{{1, 1, 1}}, []split{at(1, 1)}, nil, nil},
		// all axes, or none
		{18, "ReduceMean", nil, []given{act(2, 3, 6), {ints: []int64{}}}, [][]int64{{2, 3, 6}}, []split{at(0, 2)}, nil, nil},
		{18, "ReduceMean", nil, []given{act(2, 3, 6), ints(1)}, [][]int64{{2, 1, 6}}, []split{at(0, 2)},
			[]split{at(0, 2), {}}, nil},

		{17, "MatMul", nil, []given{act(2, 3, 4), act(2, 4, 5)}, [][]int64{{2, 3, 5}}, []split{at(2, 5)},
			[]split{{}, at(2, 5)}, nil},
		{17, "MatMul", nil, []given{act(2, 3, 4), act(4, 5)}, [][]int64{{2, 3, 5}}, []split{at(2, 5)}, []split{{}, at(1, 5)},
			nil},
		{17, "MatMul", nil, []given{act(3, 4), act(2, 4, 5)}, [][]int64{{2, 3, 5}}, []split{at(1, 3)}, []split{at(0, 3), {}},
			nil},
		{17, "MatMul", nil, []given{act(2, 3, 4), act(2, 4, 5)}, [][]int64{{2, 3, 5}}, []split{at(0, 2)},
			[]split{at(0, 2), at(0, 2)}, nil},
		{17, "MatMul", nil, []given{act(2, 3, 4), act(4, 5)}, [][]int64{{2, 3, 5}}, []split{at(0, 2)}, []split{at(0, 2), {}},
			nil},
		{17, "MatMul", nil, []given{act(4), act(2, 4, 5)}, [][]int64{{2, 5}}, []split{at(1, 5)}, nil, nil},
		{17, "MatMul", nil, []given{act(2, 3, 4), act(4)}, [][]int64{{2, 3}}, []split{at(1, 3)}, nil, nil},

		{17, "com.microsoft.RotaryEmbedding", nil, []given{act(1, 4, 5, 6), act(1)}, [][]int64{{1, 4, 5, 6}},
			[]split{at(1, 4)}, []split{at(1, 4), {}}, nil},
		{17, "com.microsoft.RotaryEmbedding", nil, []given{act(1, 4, 5, 6), act(1)}, [][]int64{{1, 4, 5, 6}},
			[]split{at(2, 5)}, nil, nil},
		{17, "com.microsoft.RotaryEmbedding", A{i("num_heads", 4)}, []given{act(1, 5, 24), act(1)}, [][]int64{{1, 5, 24}},
			[]split{at(2, 24)}, []split{at(2, 24), {}}, []int64{4}},
		{17, "com.microsoft.RotaryEmbedding", A{i("num_heads", 4)}, []given{act(1, 5, 24), act(1)}, [][]int64{{1, 5, 24}},
			[]split{at(1, 5)}, nil, nil},
		{17, "com.microsoft.RotaryEmbedding", nil, []given{act(1, 5, 24), act(1)}, [][]int64{{1, 5, 24}}, []split{at(2, 24)},
			nil, nil},

		{17, "com.microsoft.GroupQueryAttention", heads, gqa(act(1), act(1), none, none, none, act(1, 4, 5, 5), act(4)),
			present, first(at(2, 16), 3),
			[]split{at(2, 16), at(2, 8), at(2, 8), at(1, 2), at(1, 2), {}, {}, {}, {}, {}, at(1, 4), at(0, 4)}, []int64{4, 2}},
		{17, "com.microsoft.GroupQueryAttention", heads, gqa(act(1), act(1), none, none, none, act(1, 1, 5, 5)), present,
			first(at(2, 16), 3),
			[]split{at(2, 16), at(2, 8), at(2, 8), at(1, 2), at(1, 2), {}, {}, {}, {}, {}, {}}, []int64{4, 2}},
		{17, "com.microsoft.GroupQueryAttention", heads, gqa(act(1), act(1), none, none, none, none, none, act(1)), present,
			first(at(2, 16), 3), nil, nil},
		{17, "com.microsoft.GroupQueryAttention", heads, gqa(), present, first(at(1, 5), 3), nil, nil},
		{17, "com.microsoft.GroupQueryAttention", heads[:1], gqa(), present, first(at(2, 16), 3), nil, nil},
		{17, "com.microsoft.GroupQueryAttention", heads, []given{act(1, 5, 32), {}, {}}, present, first(at(2, 16), 3),
			[]split{at(2, 16, 8, 8), {}, {}}, []int64{4, 2}},
		{17, "com.microsoft.GroupQueryAttention", heads, []given{act(1, 5, 16), act(1, 5, 8), {}}, present,
			first(at(2, 16), 3), nil, nil},
		{17, "com.microsoft.GroupQueryAttention", heads, []given{act(1, 5, 16), act(5, 8), act(5, 8)}, present,
			first(at(2, 16), 3), nil, nil},
		{17, "com.microsoft.GroupQueryAttention", heads, []given{act(5, 32), {}, {}}, present, first(at(2, 16), 3), nil, nil},
		{17, "com.microsoft.MultiHeadAttention", heads[:1],
			[]given{act(1, 5, 16), act(1, 7, 16), act(1, 7, 16), act(48), {}, act(1, 4, 5, 7), act(1, 4, 6, 4), act(1, 4, 6, 4)},
			[][]int64{{1, 5, 16}}, []split{at(2, 16)},
			[]split{at(2, 16), at(2, 16), at(2, 16), at(0, 16, 16, 16), {}, at(1, 4), at(1, 4), at(1, 4)}, []int64{4, 4}},
		{17, "com.microsoft.MultiHeadAttention", heads[:1], []given{act(1, 5, 16), act(1, 7, 16), act(1, 7, 16), act(47)},
			[][]int64{{1, 5, 16}}, []split{at(2, 16)}, nil, nil},
		{17, "com.microsoft.MultiHeadAttention", heads[:1], []given{act(1, 5, 16), act(1, 7, 16), act(1, 7, 16), act(1, 48)},
			[][]int64{{1, 5, 16}}, []split{at(2, 16)}, nil, nil},
		{23, "Attention", nil, []given{act(1, 4, 5, 6), act(1, 2, 7, 6), act(1, 2, 7, 6), act(4, 5, 7), act(1, 2, 3, 6),
			act(1, 2, 3, 6)}, [][]int64{{1, 4, 5, 6}}, []split{at(1, 4)},
			[]split{at(1, 4), at(1, 2), at(1, 2), at(0, 4), at(1, 2), at(1, 2)}, []int64{4, 2}},
		{23, "Attention", A{i("q_num_heads", 4), i("kv_num_heads", 2)},
			[]given{act(1, 5, 24), act(1, 7, 12), act(1, 7, 12), act(5, 7)}, [][]int64{{1, 5, 24}}, []split{at(2, 24)},
			[]split{at(2, 24), at(2, 12), at(2, 12), {}}, []int64{4, 2}},
		{23, "Attention", nil, []given{act(1, 4, 5, 6), act(1, 2, 7, 6), act(1, 2, 7, 6)}, [][]int64{{1, 4, 5, 6}},
			[]split{at(2, 5)}, nil, nil},
		// Inputs that are not known may need to be divided.
		{23, "Attention", nil, []given{act(1, 4, 5, 6), act(1, 2, 7, 6), act(1, 2, 7, 6), {}, {}, {}, act(1)},
			[][]int64{{1, 4, 5, 6}}, []split{at(1, 4)}, []split{at(1, 4), at(1, 2), at(1, 2), {}, {}, {}, {}}, []int64{4, 2}},
		{23, "Attention", nil, []given{act(1, 4, 5, 6), act(1, 2, 7, 6), act(1, 2, 7, 6), {}, {}, {}, act(1), act(1)},
			[][]int64{{1, 4, 5, 6}}, []split{at(1, 4)}, nil, nil},
		{17, "com.microsoft.MultiHeadAttention", heads[:1],
			[]given{act(1, 5, 16), act(1, 7, 16), act(1, 7, 16), {}, {}, {}, {}, {}, act(1)}, [][]int64{{1, 5, 16}},
			[]split{at(2, 16)}, nil, nil},
	} {
		r := ruleOf(c.version, c.op, c.ins, c.outs, c.divided, c.attrs...)
		ok := r.apply()
		if !ok || c.want == nil {
			if ok != (c.want != nil) {
				t.Errorf("%s-%d of %v by %v: divided %t", c.op, c.version, c.ins, c.divided, ok)
			}
			continue
		}
		for len(c.want) < len(r.ins) {
			c.want = append(c.want, split{})
		}
		if fmt.Sprint(r.ins) != fmt.Sprint(c.want) || !slices.Equal(r.lengths, c.lengths) {
			t.Errorf("%s-%d of %v by %v: inputs %v, lengths %v; want %v, %v", c.op, c.version, c.ins, c.divided, r.ins,
				r.lengths, c.want, c.lengths)
		}
	}
	// Caches that are read are divided by the heads of keys, others are left alone.
	r := ruleOf(17, "com.microsoft.GroupQueryAttention", gqa(), present, []split{at(2, 16), at(3, 1), {}}, heads...)
	if !r.apply() || fmt.Sprint(r.outs) != fmt.Sprint([]split{at(2, 16), at(1, 2), {}}) {
		t.Errorf("caches are divided by %v", r.outs)
	}
}

// Every element of each block is on one rank, in order; parts are as equal as whole parts can be.
func TestBoundsOfRanks(t *testing.T) {
	for _, c := range []struct {
		lengths []int64
		parts   int64
	}{{[]int64{12, 8}, 4}, {[]int64{7}, 7}, {[]int64{16, 4, 4}, 4}, {[]int64{5, 3}, 1}} {
		for ranks := int64(1); ranks <= c.parts; ranks++ {
			of := split{0, c.lengths}
			all := map[int64]int64{}
			least, most := int64(1)<<40, int64(0)
			for rank := range ranks {
				s := &sharder{division: &division{lengths: c.lengths}, rank: rank, ranks: ranks}
				if got := s.parts(); got != c.parts {
					t.Fatalf("%v: %d parts", c.lengths, got)
				}
				indices := s.indices(of)
				if int64(len(indices)) != s.length(of) || !slices.IsSorted(indices) {
					t.Errorf("%v, rank %d of %d: %v, length %d", c.lengths, rank, ranks, indices, s.length(of))
				}
				least, most = min(least, s.length(of)), max(most, s.length(of))
				for _, at := range indices {
					all[at]++
				}
				start := int64(0)
				for _, b := range c.lengths { // the same share of every block
					from, to := s.bounds(b)
					if (to-from)*of.length() != s.length(of)*b || from%(b/c.parts) != 0 || !slices.Contains(indices, start+from) {
						t.Errorf("%v, rank %d of %d: %d to %d of %d", c.lengths, rank, ranks, from, to, b)
					}
					start += b
				}
			}
			for at := range of.length() {
				if all[at] != 1 {
					t.Errorf("%v on %d ranks: element %d is on %d", c.lengths, ranks, at, all[at])
				}
			}
			if most-least > of.length()/c.parts || least == 0 {
				t.Errorf("%v on %d ranks: between %d and %d elements", c.lengths, ranks, least, most)
			}
		}
	}
	for _, c := range [][3]int64{{0, 3, 0}, {2, 3, 2}, {3, 3, 3}, {4, 3, 3}, {-1, 3, 2}, {-3, 3, 0}, {-4, 3, 0}} {
		if got := clamped(c[0], c[1]); got != c[2] {
			t.Errorf("%d of %d is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// Sizes that are not known count as nothing, and axes as one element.
func TestUnknownSizes(t *testing.T) {
	m := ir.NewModel()
	known, unknown, ambiguous := m.Graph.AddValue("known"), m.Graph.AddValue("unknown"), m.Graph.AddValue("ambiguous")
	ambiguous.Ambiguous = true
	spec := ir.Spec{DType: ir.Float, Shape: []int64{2, 0, 5}}
	x := &types{sizes: map[string]ir.Spec{"known": spec, "ambiguous": spec}}
	for _, c := range []struct {
		v    *ir.Value
		axis int
		want int64
	}{{known, 0, 2}, {known, 1, 1}, {known, 2, 5}, {known, -1, 5}, {known, -3, 2}, {known, 3, 1}, {known, -4, 1},
		{unknown, 0, 1}, {ambiguous, 0, 1}, {nil, 0, 1}} {
		if got := x.axis(c.v, c.axis); got != c.want {
			t.Errorf("axis %d of %v has %d elements", c.axis, c.v, got)
		}
	}
	spec.Shape = []int64{2, 3, 5}
	x.sizes["known"] = spec
	if a, b, c, d := x.elems(known), x.elems(unknown), x.elems(ambiguous), x.elems(nil); a != 30 || b != 0 || c != 0 ||
		d != 0 {
		t.Errorf("%d, %d, %d and %d elements", a, b, c, d)
	}
	// Shapes are known where both plans have them, with as many axes.
	wide := ir.Spec{DType: ir.Float, Shape: []int64{4, 3, 5}}
	x.wider = map[string]ir.Spec{"known": wide, "ambiguous": wide}
	d := &division{cutter: &cutter{types: x}}
	constant := m.Graph.AddConst("c", &ir.Tensor{Spec: spec})
	for v, want := range map[*ir.Value]bool{known: true, constant: true, ambiguous: false, unknown: false, nil: false} {
		a, b, ok := d.shapes(v)
		if ok != want || ok && (!slices.Equal(a, spec.Shape) || v == known && !slices.Equal(b, wide.Shape) ||
			v == constant && !slices.Equal(b, spec.Shape)) {
			t.Errorf("%v has the shapes %v and %v, %t", v, a, b, ok)
		}
	}
	x.wider["known"] = ir.Spec{DType: ir.Float, Shape: []int64{4, 15}}
	if _, _, ok := d.shapes(known); ok {
		t.Error("shapes of other ranks are known")
	}
	if a, b := x.bytes(known), x.bytes(unknown); a != 120 || b != 0 {
		t.Errorf("%d and %d bytes", a, b)
	}
}
