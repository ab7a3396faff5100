package opset

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A grower appends nodes to a graph.
type grower struct{ *ir.Graph }

func (g grower) input(name string) *ir.Value {
	v := g.AddValue(name)
	g.Inputs = append(g.Inputs, v)
	return v
}

func (g grower) weight(shape ...int64) *ir.Value {
	spec := ir.Spec{DType: ir.Float, Shape: shape}
	return g.AddConst("w", &ir.Tensor{Spec: spec, Source: ir.Mem(make([]byte, spec.Bytes()))})
}

func (g grower) ints(is ...int64) *ir.Value {
	spec := ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}}
	return g.AddConst("i", &ir.Tensor{Spec: spec, Source: ir.Ints(is...)})
}

func (g grower) node(domain, op string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	n := g.NewNode(ir.OpID{Domain: domain, Type: op}, in, attrs...)
	v := g.NewValue(op)
	n.SetOutputs(v)
	g.Append(n)
	return v
}

func values(vs ...*ir.Value) []*ir.Value { return vs }

// Free sizes a, b, c of inputs x (and y) are changed where nodes require it.
func TestSolve(t *testing.T) {
	axis := func(i int64) *ir.Attr { return ir.IntAttr("axis", i) }
	for _, c := range []struct {
		name  string
		shape func(s []int64) [][]int64 // of x and y
		build func(g grower, x, y *ir.Value)
		want  []int64
	}{
		{"inner size of a product", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1]}}
		}, func(g grower, x, _ *ir.Value) {
			g.node("", "MatMul", values(x, g.weight(3610, 4)))
		}, []int64{1, 3610, 16}},
		{"product with transposed weights after Flatten", func(s []int64) [][]int64 {
			return [][]int64{{s[0], 5, s[1]}}
		}, func(g grower, x, _ *ir.Value) {
			g.node("", "Gemm", values(g.node("", "Flatten", values(x)), g.weight(4, 35)), ir.IntAttr("transB", 1))
		}, []int64{1, 7, 16}},
		{"flattened picture: height and width together", func(s []int64) [][]int64 {
			return [][]int64{{s[0], 1, s[1], s[2]}}
		}, func(g grower, x, _ *ir.Value) {
			y := g.node("", "Conv", values(x, g.weight(10, 1, 3, 3)), ir.IntsAttr("strides", 2, 2))
			g.node("", "MatMul", values(g.node("", "Reshape", values(y, g.ints(0, -1))), g.weight(3610, 2)))
		}, []int64{1, 39, 39}},
		{"computed shape", func(s []int64) [][]int64 { return [][]int64{{s[0], s[1]}} }, func(g grower, x, _ *ir.Value) {
			rows := g.node("", "Gather", values(g.node("", "Shape", values(x)), g.ints(0)), axis(0))
			to := g.node("", "Concat", values(rows, g.ints(3), g.ints(20)), axis(0))
			g.node("", "Reshape", values(x, to))
		}, []int64{1, 60, 16}},
		{"kernel less padding, after Pad", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1]}}
		}, func(g grower, x, _ *ir.Value) {
			y := g.node("", "Unsqueeze", values(g.node("", "Pad", values(x, g.ints(0, 0, 0, 32))), g.ints(1)))
			g.node("", "Conv", values(y, g.weight(2, 1, 128)))
		}, []int64{1, 96, 16}},
		{"pool", func(s []int64) [][]int64 { return [][]int64{{s[0], 2, s[1]}} }, func(g grower, x, _ *ir.Value) {
			g.node("", "MaxPool", values(x), ir.IntsAttr("kernel_shape", 30), ir.IntsAttr("pads", 2, 2))
		}, []int64{1, 26, 16}},
		{"features of trees", func(s []int64) [][]int64 { return [][]int64{{s[0], s[1]}} }, func(g grower, x, _ *ir.Value) {
			g.node("ai.onnx.ml", "TreeEnsembleRegressor", values(x), ir.IntsAttr("nodes_featureids", 3, 19, 0))
		}, []int64{1, 20, 16}},
		{"sizes that suffice stay", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1]}}
		}, func(g grower, x, _ *ir.Value) {
			g.node("ai.onnx.ml", "TreeEnsembleRegressor", values(x), ir.IntsAttr("nodes_featureids", 3, 9))
		}, []int64{1, 16, 16}},
		{"constant that broadcasts", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1]}}
		}, func(g grower, x, _ *ir.Value) {
			g.node("", "Add", values(g.node("", "Transpose", values(x), ir.IntsAttr("perm", 1, 0)), g.weight(9, 1)))
		}, []int64{1, 9, 16}},
		{"concatenation of a cache", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1], 16, s[2]}, {1, 5, 24}}
		}, func(g grower, x, y *ir.Value) {
			heads := g.node("", "Transpose", values(g.node("", "Reshape", values(y, g.ints(0, 0, 3, 8)))),
				ir.IntsAttr("perm", 0, 2, 1, 3))
			g.node("", "Concat", values(x, heads), axis(2))
		}, []int64{1, 3, 8}},
		{"cache of GroupQueryAttention", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1], 16, s[2]}, {1, 5, 24}}
		}, func(g grower, x, y *ir.Value) {
			q := g.node("", "MatMul", values(y, g.weight(24, 24)))
			kv := g.node("", "MatMul", values(y, g.weight(24, 12)))
			g.node("com.microsoft", "GroupQueryAttention", values(q, kv, kv, x, x), ir.IntAttr("num_heads", 4),
				ir.IntAttr("kv_num_heads", 2))
		}, []int64{1, 2, 6}},
		{"cache with packed queries, keys and values", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1], 16, s[2]}, {1, 5, 48}}
		}, func(g grower, x, y *ir.Value) {
			g.node("com.microsoft", "GroupQueryAttention", values(y, nil, nil, x, x), ir.IntAttr("num_heads", 4),
				ir.IntAttr("kv_num_heads", 2))
		}, []int64{1, 2, 6}},
		{"cache of MultiHeadAttention", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1], 16, s[2]}, {1, 5, 24}}
		}, func(g grower, x, y *ir.Value) {
			g.node("com.microsoft", "MultiHeadAttention", values(y, y, y, nil, nil, nil, x, x), ir.IntAttr("num_heads", 4))
		}, []int64{1, 4, 6}},
		{"cache of Attention", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1], 16, s[2]}, {1, 5, 24}}
		}, func(g grower, x, y *ir.Value) {
			g.node("", "Attention", values(y, y, y, nil, x, x), ir.IntAttr("q_num_heads", 4), ir.IntAttr("kv_num_heads", 4))
		}, []int64{1, 4, 6}},
		{"frames of a padded signal", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1]}}
		}, func(g grower, x, _ *ir.Value) {
			padded := g.node("", "Pad", values(x, g.ints(0, 32, 0, 32)))
			g.node("", "STFT", values(padded, g.ints(10), g.weight(200)))
		}, []int64{1, 136, 16}},
		{"frames of a length", func(s []int64) [][]int64 {
			return [][]int64{{s[0], s[1], 1}}
		}, func(g grower, x, _ *ir.Value) {
			g.node("", "STFT", values(x, g.ints(10), nil, g.ints(90)))
		}, []int64{1, 90, 16}},
		{"what is reflected", func(s []int64) [][]int64 { return [][]int64{{s[0], s[1]}} }, func(g grower, x, _ *ir.Value) {
			g.node("", "Pad", values(x, g.ints(0, 20, 0, 32)), &ir.Attr{Name: "mode", Type: ir.AttrString, S: "reflect"})
		}, []int64{1, 33, 16}},
		{"nothing suffices", func(s []int64) [][]int64 { return [][]int64{{s[0], s[1]}} }, func(g grower, x, _ *ir.Value) {
			g.node("", "MatMul", values(g.weight(2, 3), g.weight(4, 5)))
		}, []int64{1, 16, 16}},
	} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 23}, {Domain: "ai.onnx.ml", Version: 3}, {Domain: "com.microsoft", Version: 1}}
		g := grower{m.Graph}
		x, y := g.input("x"), g.input("y")
		c.build(g, x, y)
		vary := [][]int{{2}, {1}, {0}}
		if len(c.shape(c.want)[0]) == 4 && c.want[1] == c.want[2] {
			vary = append([][]int{{1, 2}}, vary...)
		}
		s := System{Graph: m.Graph, Vary: vary, Shapes: func(sizes []int64) map[*ir.Value][]int64 {
			shapes := c.shape(sizes)
			return map[*ir.Value][]int64{x: shapes[0], y: shapes[len(shapes)-1]}
		}}
		if got := s.Solve([]int64{1, 16, 16}); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// Both branches of If can run with the sizes.
func TestSolveBranches(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := grower{m.Graph}
	x := g.input("x")
	n := g.NewNode(ir.OpID{Type: "If"}, values(g.input("which")))
	for i, kernel := range []int64{40, 90} {
		sub := grower{ir.NewSubgraph(m.Graph, n)}
		sub.Outputs = values(sub.node("", "Conv", values(x, sub.weight(1, 1, kernel))))
		n.SetAttr(&ir.Attr{Name: []string{"then_branch", "else_branch"}[i], Type: ir.AttrGraph, Graph: sub.Graph})
	}
	n.SetOutputs(g.NewValue("out"))
	g.Append(n)
	s := System{Graph: m.Graph, Vary: [][]int{{0}}, Shapes: func(sizes []int64) map[*ir.Value][]int64 {
		return map[*ir.Value][]int64{x: {1, 1, sizes[0]}}
	}}
	if got := s.Solve([]int64{16}); got[0] != 90 {
		t.Errorf("got %v, want 90", got)
	}
}

// The number of frames follows from the sequence of a Scan, and the width of a frame from its body, as in a feature
// extractor that joins the rest of the frame before with the next samples.
func TestSolveScan(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(g grower, frames *ir.Value)
		want  int64
	}{
		{"at least one element", func(g grower, frames *ir.Value) {}, 40},
		{"width of an element", func(g grower, frames *ir.Value) { g.node("", "Mul", values(frames, g.weight(40))) }, 40},
		{"number of elements", func(g grower, frames *ir.Value) {
			g.node("", "MatMul", values(g.node("", "Transpose", values(frames), ir.IntsAttr("perm", 0, 2, 1)), g.weight(3, 4)))
		}, 72},
		{"both", func(g grower, frames *ir.Value) {
			g.node("", "MatMul", values(g.node("", "Flatten", values(frames)), g.weight(120, 4)))
		}, 72},
	} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		g := grower{m.Graph}
		x := g.input("x")
		rest := g.node("", "Slice", values(x, g.ints(0), g.ints(24), g.ints(1)))
		size := g.node("", "Shape", values(x), ir.IntAttr("start", 1))
		end := g.node("", "Sub",
			values(size, g.node("", "Mod", values(g.node("", "Sub", values(size, g.ints(24))), g.ints(16)))))
		next := g.node("", "Reshape", values(g.node("", "Slice", values(x, g.ints(24), end, g.ints(1))), g.ints(0, -1, 16)))
		n := g.NewNode(ir.OpID{Type: "Scan"}, values(rest, next), ir.IntAttr("num_scan_inputs", 1),
			ir.IntsAttr("scan_input_axes", 1), ir.IntsAttr("scan_output_axes", -2))
		sub := grower{ir.NewSubgraph(m.Graph, n)}
		frame := sub.node("", "Concat", values(sub.input("previous"), sub.input("current")), ir.IntAttr("axis", -1))
		sub.Outputs = values(sub.node("", "Slice", values(frame, sub.ints(16), sub.ints(1<<40), sub.ints(1))), frame)
		n.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: sub.Graph})
		frames := g.NewValue("frames")
		n.SetOutputs(g.NewValue("state"), frames)
		g.Append(n)
		c.build(g, frames)
		s := System{Graph: m.Graph, Vary: [][]int{{0}}, Shapes: func(sizes []int64) map[*ir.Value][]int64 {
			return map[*ir.Value][]int64{x: {1, sizes[0]}}
		}}
		if got := s.Solve([]int64{16}); got[0] != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// loop appends a Loop over the rows of x's axis 1 to g, with the carried values that initial has, and returns its
// outputs. The body gets the row and the carried values, and returns these and scan outputs.
func (g grower) loop(x *ir.Value, initial []*ir.Value, outputs int,
	body func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value) []*ir.Value {
	count := g.node("", "Gather", values(g.node("", "Shape", values(x)), g.ints(1)))
	n := g.NewNode(ir.OpID{Type: "Loop"}, append(values(count, nil), initial...))
	sub := grower{ir.NewSubgraph(g.Graph, n)}
	i, condition := sub.input("i"), sub.input("condition")
	var carried []*ir.Value
	for range initial {
		carried = append(carried, sub.input("carried"))
	}
	row := sub.node("", "Gather", values(x, i), ir.IntAttr("axis", 1))
	next := body(sub, row, carried)
	sub.Outputs = append(values(sub.node("", "Identity", values(condition))), next...)
	n.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: sub.Graph})
	outs := make([]*ir.Value, outputs)
	for k := range outs {
		outs[k] = g.NewValue("out")
	}
	n.SetOutputs(outs...)
	g.Append(n)
	return outs
}

// Sizes follow from the nodes of a body, from the number of iterations, and from carried values whose sizes do not
// change.
func TestSolveLoop(t *testing.T) {
	concat := func(g grower, vs ...*ir.Value) *ir.Value { return g.node("", "Concat", vs, ir.IntAttr("axis", -1)) }
	flat := func(g grower, v *ir.Value, size int64) {
		g.node("", "MatMul", values(g.node("", "Reshape", values(v, g.ints(1, -1))), g.weight(size, 2)))
	}
	for _, c := range []struct {
		name  string
		build func(g grower, x, y *ir.Value) // x is [1, a, b], y is [1, c]
		want  []int64
	}{
		{"row within the body", func(g grower, x, y *ir.Value) {
			g.loop(x, values(y), 1, func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
				g.node("", "MatMul", values(row, g.weight(24, 3)))
				return carried
			})
		}, []int64{16, 24, 16}},
		{"carried value within the body", func(g grower, x, y *ir.Value) {
			g.loop(x, values(y), 1, func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
				return values(g.node("", "MatMul", values(carried[0], g.weight(24, 24))))
			})
		}, []int64{16, 16, 24}},
		{"row and carried value together", func(g grower, x, _ *ir.Value) {
			state := g.node("", "ConstantOfShape", values(g.ints(1, 8)))
			g.loop(x, values(state), 1, func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
				return values(g.node("", "MatMul", values(concat(g, carried[0], row), g.weight(32, 8))))
			})
		}, []int64{16, 24, 16}},
		{"carried value after the loop", func(g grower, x, y *ir.Value) {
			outs := g.loop(x, values(y), 1, func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
				return values(g.node("", "Tanh", carried))
			})
			g.node("", "MatMul", values(outs[0], g.weight(20, 2)))
		}, []int64{16, 16, 20}},
		{"number of iterations", func(g grower, x, y *ir.Value) {
			outs := g.loop(x, values(y), 2, func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
				return values(carried[0], g.node("", "MatMul", values(carried[0], g.weight(16, 3))))
			})
			flat(g, outs[1], 60)
		}, []int64{20, 16, 16}},
		{"at least one iteration", func(g grower, x, y *ir.Value) {
			g.loop(g.node("", "Slice", values(x, g.ints(30), g.ints(1<<40), g.ints(1))), values(y), 1,
				func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
					return carried
				})
		}, []int64{31, 16, 16}},
		{"an unknown condition", func(g grower, x, y *ir.Value) {
			outs := g.loop(x, values(y), 2, func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
				return values(carried[0], carried[0])
			})
			n := outs[0].Producer()
			n.SetInput(1, g.node("", "Equal", values(y, y)))
			flat(g, outs[1], 60)
		}, []int64{16, 16, 16}},
		{"a carried value that grows", func(g grower, x, y *ir.Value) {
			outs := g.loop(x, values(y), 1, func(g grower, row *ir.Value, carried []*ir.Value) []*ir.Value {
				return values(concat(g, carried[0], g.weight(1, 1)))
			})
			g.node("", "MatMul", values(outs[0], g.weight(40, 2)))
		}, []int64{16, 16, 16}},
		{"nested", func(g grower, x, y *ir.Value) {
			g.loop(x, values(y), 1, func(g grower, _ *ir.Value, carried []*ir.Value) []*ir.Value {
				return g.loop(x, carried, 1, func(g grower, _ *ir.Value, carried []*ir.Value) []*ir.Value {
					return values(g.node("", "MatMul", values(carried[0], g.weight(24, 24))))
				})
			})
		}, []int64{16, 16, 24}},
	} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		g := grower{m.Graph}
		x, y := g.input("x"), g.input("y")
		c.build(g, x, y)
		s := System{Graph: m.Graph, Vary: [][]int{{2}, {1}, {0}}, Shapes: func(sizes []int64) map[*ir.Value][]int64 {
			return map[*ir.Value][]int64{x: {1, sizes[0], sizes[1]}, y: {1, sizes[2]}}
		}}
		if got := s.Solve([]int64{16, 16, 16}); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// The shape of a carried value is not inferred, as it may change, and that of a scan output depends on the number of
// iterations.
func TestShapesOfLoop(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := grower{m.Graph}
	var body []*ir.Value
	outs := g.loop(g.input("x"), values(g.weight(1, 4)), 2, func(g grower, _ *ir.Value, carried []*ir.Value) []*ir.Value {
		body = carried
		return values(g.node("", "Concat", values(carried[0], carried[0]), ir.IntAttr("axis", 0)), g.weight(2))
	})
	for _, v := range append(body, outs...) {
		if s, ok := Shape(v); ok {
			t.Errorf("%s: got %v, want an unknown shape", v.Name, s)
		}
	}
}
