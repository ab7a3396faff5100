package main

import (
	"strconv"

	"github.com/mcompress/mcompress/ir"
)

// A kind is a shape of graph that is made in any size.
type kind struct {
	name  string
	model func(n int) *ir.Model
}

// kinds are the shapes of graphs.
var kinds = []kind{
	{"nodes", from(nodes)},
	{"initializers", from(initializers)},
	{"layers", from(layers)},
	{"blocks", from(blocks)},
	{"unused", from(unused)},
	{"consumers", from(consumers)},
	{"folded", from(folded)},
	{"doubled", from(doubled)},
	{"views", from(views)},
	{"casts", from(casts)},
	{"affine", from(affine)},
	{"residual", from(residual)},
	{"shapes", from(shapes)},
	{"nested", from(nested)},
	{"decoder", decoder},
}

// size is the number of rows and columns of weights.
const size = 8

// from returns models of a row of numbers; grow adds about n nodes or initializers after x and returns the output.
func from(grow func(g *ir.Graph, x *ir.Value, n int) *ir.Value) func(n int) *ir.Model {
	return func(n int) *ir.Model {
		m := ir.NewModel()
		m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
		g := m.Graph
		g.Name = "graph"
		x := g.AddValue("x")
		x.Type = row()
		g.Inputs = append(g.Inputs, x)
		y := grow(g, product(g, x), n)
		y.Type = row()
		g.AddOutput(y)
		return m
	}
}

// row is the type of the model's input and output.
func row() *ir.Type { return &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: size}}} }

// weight adds an initializer of the given shape.
func weight(g *ir.Graph, shape ...int64) *ir.Value {
	w := &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: shape}}
	values := make([]float32, w.Elems())
	for i := range values {
		values[i] = float32(i%7) / 8
	}
	w.Source = ir.Floats(values...)
	return g.AddConst("weight."+strconv.Itoa(len(g.Consts())), w)
}

// product multiplies x by a weight.
func product(g *ir.Graph, x *ir.Value) *ir.Value {
	return g.Insert(nil, "MatMul", []*ir.Value{x, weight(g, size, size)})
}

// nodes is a chain of nodes without weights.
func nodes(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	for range n {
		x = g.Insert(nil, "Relu", []*ir.Value{x})
	}
	return x
}

// initializers are the operands of sums of a thousand each.
func initializers(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	for first := 0; first < n; first += 1000 {
		in := []*ir.Value{x}
		for range min(1000, n-first) {
			in = append(in, weight(g, 1, size))
		}
		x = g.Insert(nil, "Sum", in)
	}
	return x
}

// layers are products with n weights.
func layers(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	for range n {
		x = product(g, x)
	}
	return x
}

// blocks are n nodes, ten for each weight: a product, its bias and activations.
func blocks(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	for range n / 10 {
		x = g.Insert(nil, "Add", []*ir.Value{product(g, x), weight(g, size)})
		for range 4 {
			x = g.Insert(nil, "Tanh", []*ir.Value{g.Insert(nil, "Relu", []*ir.Value{x})})
		}
	}
	return x
}

// unused are n initializers that no node reads.
func unused(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	for range n {
		weight(g, 1, size)
	}
	return x
}

// consumers read one value, and one node reads them all.
func consumers(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	var all []*ir.Value
	for range n {
		all = append(all, g.Insert(nil, "Relu", []*ir.Value{x}))
	}
	return g.Insert(nil, "Sum", all)
}

// folded is a constant expression: a chain of sums of weights.
func folded(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	w := weight(g, 1, size)
	for range n {
		w = g.Insert(nil, "Add", []*ir.Value{w, weight(g, 1, size)})
	}
	return g.Insert(nil, "Add", []*ir.Value{x, w})
}

// doubled is a constant expression of 2^n paths: a chain of nodes that read the previous one twice.
func doubled(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	w := weight(g, 1, size)
	for range n {
		w = g.Insert(nil, "Mul", []*ir.Value{w, w})
	}
	return g.Insert(nil, "Add", []*ir.Value{x, w})
}

// views are a chain of views of a weight.
func views(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	w := weight(g, size, size)
	for range n / 2 {
		w = g.Insert(nil, "Identity", []*ir.Value{g.Insert(nil, "Transpose", []*ir.Value{w},
			ir.IntsAttr("perm", 1, 0))})
	}
	return g.Insert(nil, "MatMul", []*ir.Value{x, w})
}

// casts is a chain of casts of activations.
func casts(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	for range n / 2 {
		half := g.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Float16)))
		x = g.Insert(nil, "Cast", []*ir.Value{half}, ir.IntAttr("to", int64(ir.Float)))
	}
	return product(g, x)
}

// affine is a chain of factors and terms of channels.
func affine(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	by, bias := weight(g, size), weight(g, size)
	for range n / 2 {
		x = g.Insert(nil, "Add", []*ir.Value{g.Insert(nil, "Mul", []*ir.Value{x, by}), bias})
	}
	return product(g, x)
}

// residual is a chain of sums of an activation and its product.
func residual(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	w := weight(g, size, size)
	for range n / 2 {
		x = g.Insert(nil, "Add", []*ir.Value{x, g.Insert(nil, "MatMul", []*ir.Value{x, w})})
	}
	return x
}

// shapes are reshapes to the shapes of earlier values.
func shapes(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	for range n / 3 {
		shape := g.Insert(nil, "Shape", []*ir.Value{x})
		x = g.Insert(nil, "Sigmoid", []*ir.Value{g.Insert(nil, "Reshape", []*ir.Value{x, shape})})
	}
	return product(g, x)
}

// nested are If nodes, each in the branches of the one before; they read x.
func nested(g *ir.Graph, x *ir.Value, n int) *ir.Value {
	condition := g.AddConst("condition", &ir.Tensor{Spec: ir.Spec{DType: ir.Bool, Shape: []int64{}}, Source: ir.Mem{1}})
	return branches(g, x, condition, n)
}

func branches(g *ir.Graph, x, condition *ir.Value, depth int) *ir.Value {
	if depth == 0 {
		return g.Insert(nil, "Relu", []*ir.Value{x})
	}
	n := g.NewNode(ir.OpID{Type: "If"}, []*ir.Value{condition})
	y := g.NewValue("t")
	n.SetOutputs(y)
	g.Append(n)
	then := ir.NewSubgraph(g, n)
	then.Name = "then"
	then.AddOutput(branches(then, x, condition, depth-1))
	other := ir.NewSubgraph(g, n)
	other.Name = "else"
	other.AddOutput(other.Insert(nil, "Neg", []*ir.Value{x}))
	n.Attrs = []*ir.Attr{{Name: "then_branch", Type: ir.AttrGraph, Graph: then},
		{Name: "else_branch", Type: ir.AttrGraph, Graph: other}}
	return y
}
