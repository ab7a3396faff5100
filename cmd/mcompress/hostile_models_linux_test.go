package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// hostileModels are models of a few hundred bytes whose runs need more memory or steps than there are, whose functions
// do not end, or whose weights have no usable scales. Each has the input x and an output that the function returns.
var hostileModels = map[string]func(g hostile, x *ir.Value) *ir.Value{
	"tile":   func(g hostile, x *ir.Value) *ir.Value { return g.op("Tile", x, g.ints(1<<20, 1<<20)) },
	"expand": func(g hostile, x *ir.Value) *ir.Value { return g.op("Expand", x, g.ints(1<<40, 4)) },
	"range": func(g hostile, _ *ir.Value) *ir.Value {
		return g.floats(g.op("Range", g.int(0), g.int(1<<62), g.int(1)))
	},
	"zero step": func(g hostile, _ *ir.Value) *ir.Value {
		return g.floats(g.op("Range", g.int(0), g.int(1<<62), g.int(0)))
	},
	"pad": func(g hostile, x *ir.Value) *ir.Value { return g.op("Pad", x, g.ints(1<<40, 1<<20, 0, 0)) },
	"pad by opposite sizes": func(g hostile, x *ir.Value) *ir.Value {
		return g.op("Pad", x, g.ints(-1<<62, 1<<62, -1<<62, 1<<62))
	},
	"resize": func(g hostile, x *ir.Value) *ir.Value { return g.op("Resize", x, nil, g.numbers(3e38, 3e38)) },
	"onehot": func(g hostile, x *ir.Value) *ir.Value {
		return g.op("OneHot", g.node("Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Int64))), g.int(1<<40),
			g.numbers(0, 1))
	},
	"constant of shape": func(g hostile, x *ir.Value) *ir.Value {
		return g.sum(x, g.op("ConstantOfShape", g.ints(1<<31, 1<<31, 1<<31)))
	},
	"random normal": func(g hostile, x *ir.Value) *ir.Value {
		return g.sum(x, g.node("RandomNormal", nil, ir.IntsAttr("shape", 1<<20, 1<<20)))
	},
	"random uniform": func(g hostile, x *ir.Value) *ir.Value {
		return g.sum(x, g.node("RandomUniform", nil, ir.IntsAttr("shape", 1<<20, 1<<20)))
	},
	"multinomial": func(g hostile, x *ir.Value) *ir.Value {
		return g.floats(g.node("Multinomial", []*ir.Value{x}, ir.IntAttr("sample_size", math.MaxInt32)))
	},
	"doubling": func(g hostile, x *ir.Value) *ir.Value {
		for range 45 {
			x = g.node("Concat", []*ir.Value{x, x}, ir.IntAttr("axis", 0))
		}
		return x
	},
	"paths twice as many with each operator": func(g hostile, x *ir.Value) *ir.Value {
		w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4, 4}},
			Source: ir.Mem(ir.ArrayOf(make([]float32, 16), 4, 4).Data)})
		for range 100 {
			x, w = g.op("Max", x, g.op("Identity", x)),
				g.op("Max", w, g.node("Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0)))
		}
		return g.op("MatMul", x, w)
	},
	"loop with a scan output": func(g hostile, x *ir.Value) *ir.Value {
		return g.loop(nil, func(b hostile, _ *ir.Value) *ir.Value { return b.op("Identity", x) })
	},
	// in steps of 64 MiB: what the collector has not freed is larger than the tensor
	"loop of a growing tensor": func(g hostile, x *ir.Value) *ir.Value {
		step := g.op("Expand", g.op("ReduceSum", x), g.ints(64<<20/4, 1))
		return g.loop(step, func(b hostile, t *ir.Value) *ir.Value {
			return b.node("Concat", []*ir.Value{t, step}, ir.IntAttr("axis", 0))
		})
	},
	"loop of growing text": func(g hostile, x *ir.Value) *ir.Value {
		text := g.node("Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.String)))
		g.loop(text, func(b hostile, s *ir.Value) *ir.Value { return b.op("StringConcat", s, s) })
		return g.op("Relu", x)
	},
	"loop of a growing sequence": func(g hostile, x *ir.Value) *ir.Value {
		list := g.loop(g.op("SequenceEmpty"), func(b hostile,
			list *ir.Value) *ir.Value {
			return b.op("SequenceInsert", list, x)
		})
		return g.node("ConcatFromSequence", []*ir.Value{list}, ir.IntAttr("axis", 0))
	},
	"scan of a growing state": func(g hostile, x *ir.Value) *ir.Value {
		n := g.NewNode(ir.OpID{Type: "Scan"}, []*ir.Value{x, g.numbers(make([]float32, 1000)...)},
			ir.IntAttr("num_scan_inputs", 1))
		b := hostile{ir.NewSubgraph(g.Graph, n)}
		state, item := b.input("state", nil), b.input("item", nil)
		b.AddOutput(b.node("Concat", []*ir.Value{state, state}, ir.IntAttr("axis", 0)))
		b.AddOutput(b.op("Identity", item))
		n.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: b.Graph})
		n.SetOutputs(g.NewValue("state"), g.NewValue("items"))
		g.Append(n)
		return n.Outputs[0]
	},
	"functions that call each other": func(g hostile, x *ir.Value) *ir.Value {
		g.function("A", "B")
		g.function("B", "A")
		return g.call("A", x)
	},
	"functions that call the next twice": func(g hostile, x *ir.Value) *ir.Value {
		for i := range 40 {
			next := fmt.Sprint("F", i+1)
			g.function(fmt.Sprint("F", i), next, next)
		}
		g.function("F40")
		return g.call("F0", x)
	},
	"weights of the largest number":   weighted(math.MaxFloat32),
	"weights of the smallest number":  weighted(-math.SmallestNonzeroFloat32),
	"weights without a number":        weighted(float32(math.NaN())),
	"weights of infinity":             weighted(float32(math.Inf(1))),
	"an input of the largest size":    sized(math.MaxInt64),
	"an input of a negative size":     sized(-5),
	"an output that is not connected": func(g hostile, _ *ir.Value) *ir.Value { return g.AddValue("nothing") },
}

// hostile builds the graph of a hostile model.
type hostile struct{ *ir.Graph }

// hostileModel returns a model of hostileModels.
func hostileModel(build func(g hostile, x *ir.Value) *ir.Value) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}, {Domain: "f", Version: 1}}
	g := hostile{m.Graph}
	g.Name = "g"
	y := build(g, g.input("x", &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 4}}}))
	y.Type = &ir.Type{Elem: ir.Float}
	g.AddOutput(y)
	return m
}

// weighted returns products with weights of plus and minus x.
func weighted(x float32) func(g hostile, in *ir.Value) *ir.Value {
	return func(g hostile, in *ir.Value) *ir.Value {
		const size = 64
		in.Type.Shape[1].N = size
		data := slices.Repeat([]float32{x, -x}, size*size/2)
		w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{size, size}},
			Source: ir.Mem(ir.ArrayOf(data, size, size).Data)})
		return g.op("MatMul", g.op("MatMul", in, w), w)
	}
}

// sized returns an input with a first axis of n.
func sized(n int64) func(g hostile, in *ir.Value) *ir.Value {
	return func(g hostile, in *ir.Value) *ir.Value {
		in.Type.Shape[0].N = n
		return g.op("Relu", in)
	}
}

func (g hostile) op(op string, in ...*ir.Value) *ir.Value { return g.node(op, in) }

func (g hostile) node(op string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
	return g.Insert(nil, op, in, attrs...)
}

func (g hostile) input(name string, t *ir.Type) *ir.Value {
	v := g.NewValue(name)
	v.Type = t
	g.Inputs = append(g.Inputs, v)
	return v
}

func (g hostile) constant(a *ir.Array) *ir.Value {
	return g.AddConst("c", &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
}

func (g hostile) int(n int64) *ir.Value      { return g.constant(ir.ArrayOf([]int64{n})) }
func (g hostile) ints(ns ...int64) *ir.Value { return g.constant(ir.ArrayOf(ns, int64(len(ns)))) }
func (g hostile) numbers(xs ...float32) *ir.Value {
	return g.constant(ir.ArrayOf(xs, int64(len(xs))))
}

// floats converts v to float32.
func (g hostile) floats(v *ir.Value) *ir.Value {
	return g.node("Cast", []*ir.Value{v}, ir.IntAttr("to", int64(ir.Float)))
}

// sum adds the sum of v to x.
func (g hostile) sum(x, v *ir.Value) *ir.Value { return g.op("Add", x, g.op("ReduceSum", v)) }

// loop is an endless loop: over a carried value that starts as first, or with a scan output if first is nil.
func (g hostile) loop(first *ir.Value, body func(b hostile, carried *ir.Value) *ir.Value) *ir.Value {
	in := []*ir.Value{g.int(1 << 62), g.constant(ir.ArrayOf([]bool{true}))}
	if first != nil {
		in = append(in, first)
	}
	n := g.NewNode(ir.OpID{Type: "Loop"}, in)
	b := hostile{ir.NewSubgraph(g.Graph, n)}
	b.input("i", &ir.Type{Elem: ir.Int64, Shape: []ir.Dim{}})
	going := b.input("going", &ir.Type{Elem: ir.Bool, Shape: []ir.Dim{}})
	var carried *ir.Value
	if first != nil {
		carried = b.input("carried", nil)
	}
	b.AddOutput(b.op("Identity", going))
	b.AddOutput(body(b, carried))
	n.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: b.Graph})
	n.SetOutputs(g.NewValue("result"))
	g.Append(n)
	return n.Outputs[0]
}

// function adds a function that calls others in sequence, or Relu.
func (g hostile) function(name string, calls ...string) {
	f := g.Model().AddFunction(ir.OpID{Domain: "f", Type: name})
	f.Opsets = []ir.Opset{{Version: 21}, {Domain: "f", Version: 1}}
	b := hostile{f.Body}
	v := b.input("a", nil)
	for _, name := range calls {
		v = b.call(name, v)
	}
	if len(calls) == 0 {
		v = b.op("Relu", v)
	}
	b.AddOutput(v)
}

// call calls a function.
func (g hostile) call(name string, in *ir.Value) *ir.Value {
	n := g.NewNode(ir.OpID{Domain: "f", Type: name}, []*ir.Value{in})
	n.SetOutputs(g.NewValue("b"))
	g.Append(n)
	return n.Outputs[0]
}
