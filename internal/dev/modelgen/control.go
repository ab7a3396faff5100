package modelgen

import (
	"maps"

	"github.com/mcompress/mcompress/ir"
)

// inner is a builder of a body. It may read the values of the graph around it.
func (b *builder) inner(name string) *builder {
	c := *b
	c.g = &Graph{Name: b.name(name)}
	c.nested = true
	c.shared = maps.Clone(b.shared)
	return &c
}

func declared(v val) Value {
	out := Value{Name: v.name, Type: v.typ, Shape: []ir.Dim{}}
	for _, d := range v.shape {
		out.Shape = append(out.Shape, ir.Dim{N: d})
	}
	return out
}

// ifNode has a layer in each branch, which read x from outside; the condition is constant or computed.
func (b *builder) ifNode(x val) val {
	b.trait("If")
	n, untyped := b.size(), b.chance(3) // outputs of subgraphs need no types
	branch := func(name string) *Graph {
		c := b.inner(name)
		y := c.node("MatMul", []val{x, c.weight("weight", x.last(), x.last(), n)}, x.typ, with(x.shape, -1, n))
		out := declared(c.unary(y))
		if untyped {
			out = Value{Name: out.Name}
		}
		c.g.Outputs = []Value{out}
		return c.g
	}
	var condition val
	if b.chance(2) {
		condition = b.constant(tensorOf("", ir.Bool, []int64{}, func(int64) float64 { return float64(b.r.IntN(2)) }))
	} else {
		b.m.discontinuous = true
		zero := b.number(0)
		axes := make([]int64, x.rank())
		for i := range axes {
			axes[i] = int64(i)
		}
		condition = b.reshapeScalar(b.node("Less", []val{b.mean(x, axes...), zero}, ir.Bool, filledShape(x.rank())))
	}
	return b.node("If", []val{condition}, x.typ, with(x.shape, -1, n), body("then_branch", branch("then")),
		body("else_branch", branch("else")))
}

func filledShape(rank int) []int64 {
	s := make([]int64, rank)
	for i := range s {
		s[i] = 1
	}
	return s
}

// reshapeScalar removes all axes.
func (b *builder) reshapeScalar(x val) val {
	return b.node("Reshape", []val{x, b.constant(&Tensor{Type: ir.Int64, Shape: []int64{0}})}, x.typ, []int64{})
}

// loop carries x through a square layer a few times, and returns the last value or those of all iterations.
func (b *builder) loop(x val) val {
	trips := int64(1 + b.r.IntN(3))
	count := b.constant(tensorOf("", ir.Int64, []int64{}, func(int64) float64 { return float64(trips) }))
	if b.chance(2) {
		trips = 0
	}
	return b.loopOf(x, count, trips)
}

// narrowed is x, behind a layer of fewer outputs where the square of its size is more than a few pieces.
func (b *builder) narrowed(x val) val {
	n := x.last()
	if n*n <= 1<<20 {
		return x
	}
	few := b.size()
	return b.node("MatMul", []val{x, b.weight("down", n, n, few)}, x.typ, with(x.shape, -1, few))
}

// loopOf is a Loop of count iterations that stacks an output of each: steps of them, -1 where that depends on values,
// and 0 for none, where it returns the last value.
func (b *builder) loopOf(x, count val, steps int64) val {
	b.trait("Loop")
	x = b.narrowed(x)
	c := b.inner("loop")
	i, keep, state := val{b.name("i"), ir.Int64, []int64{}}, val{b.name("keep"), ir.Bool, []int64{}},
		val{b.name("state"), x.typ, x.shape}
	c.g.Inputs = []Value{declared(i), declared(keep), declared(state)}
	y := c.like("Tanh", c.like("MatMul", state, c.weight("weight", x.last(), x.last(), x.last())))
	again := c.node("Identity", []val{keep}, ir.Bool, []int64{})
	c.g.Outputs = []Value{declared(again), declared(y)}
	n := &Node{Name: b.name("Loop"), Op: "Loop", Attrs: []Attr{body("body", c.g)}}
	out := val{b.name("v"), x.typ, x.shape}
	n.Out = []string{out.name}
	if steps != 0 {
		each := c.unary(y)
		if b.chance(3) {
			each = c.ifNode(y)
			b.trait("If in a Loop")
		}
		c.g.Outputs = append(c.g.Outputs, declared(each))
		out = val{b.name("v"), x.typ, append([]int64{steps}, each.shape...)}
		n.Out = append(n.Out, out.name)
		b.trait("Loop with a scan output")
	}
	n.In = []string{count.name, b.constant(tensorOf("", ir.Bool, []int64{}, func(int64) float64 { return 1 })).name,
		x.name}
	b.add(n)
	return out
}

// scan runs a recurrent cell over the first axis of x.
func (b *builder) scan(x val) val {
	b.trait("Scan")
	c := b.inner("scan")
	hidden := b.size()
	row := x.shape[1:]
	state := val{b.name("state"), x.typ, with(row, -1, hidden)}
	in := val{b.name("row"), x.typ, row}
	c.g.Inputs = []Value{declared(state), declared(in)}
	products := []val{in, state}
	if len(row) == 1 { // MatMul of a vector
		for i, v := range products {
			products[i] = c.unsqueeze(v, 0)
		}
	}
	a := c.node("MatMul", []val{products[0], c.weight("weight", x.last(), x.last(), hidden)}, x.typ,
		with(products[0].shape, -1, hidden))
	h := c.node("MatMul", []val{products[1], c.weight("recurrence", hidden, hidden, hidden)}, x.typ,
		with(products[1].shape, -1, hidden))
	next := c.like("Tanh", c.like("Add", a, h))
	if len(row) == 1 {
		next = c.squeeze(next, 0)
	}
	c.g.Outputs = []Value{declared(next), declared(c.unary(next))}
	start := b.constant(tensorOf("", b.float, state.shape, normal(b.r, 0.1)))
	last := val{b.name("v"), x.typ, state.shape}
	all := val{b.name("v"), x.typ, append([]int64{x.shape[0]}, state.shape...)}
	b.add(&Node{Name: b.name("Scan"), Op: "Scan", In: []string{start.name, x.name}, Out: []string{last.name, all.name},
		Attrs: []Attr{body("body", c.g), i64("num_scan_inputs", 1)}})
	return all
}

// call adds a function of a layer, with a weight among its arguments and one inside, and calls it twice, now and then
// in another function.
func (b *builder) call(x val) val {
	x = b.narrowed(x)
	if b.m.IR < 8 {
		return b.unary(x)
	}
	b.trait("function")
	c := b.inner("function")
	c.shared = map[string][]val{}
	in := val{"x", x.typ, x.shape}
	weight := val{"w", x.typ, []int64{x.last(), x.last()}}
	c.plain = true
	y := c.node("MatMul", []val{in, weight}, x.typ, x.shape)
	if b.chance(2) {
		t := filled(b.r, b.name("inside"), b.float, []int64{x.last(), x.last()}, x.last(), fillers[0])
		c.add(&Node{Name: b.name("Constant"), Op: "Constant", Out: []string{t.Name},
			Attrs: []Attr{valueAttr("value", t)}})
		y = c.like("MatMul", y, val{t.Name, t.Type, t.Shape})
	}
	y = c.unary(y)
	f := &Function{Name: b.name("Block"), In: []string{in.name, weight.name}, Out: []string{y.name}, Nodes: c.g.Nodes}
	b.m.Functions = append(b.m.Functions, f)
	if b.chance(3) {
		f = b.caller(f, x)
	}
	for range 1 + b.r.IntN(2) {
		x = b.domain(local, f.Name, []val{x, b.weight("weight", x.last(), x.last(), x.last())}, x.typ, x.shape)
	}
	return x
}

// caller adds a function that calls f, whose first result has the type of x.
func (b *builder) caller(f *Function, x val) *Function {
	b.trait("nested function")
	c := b.inner("caller")
	c.shared, c.plain = map[string][]val{}, true
	var in []val
	for _, name := range f.In {
		in = append(in, val{name: name})
	}
	y := c.like("Tanh", c.domain(local, f.Name, in, x.typ, x.shape))
	outer := &Function{Name: b.name("Outer"), In: f.In, Out: []string{y.name}, Nodes: c.g.Nodes}
	b.m.Functions = append(b.m.Functions, outer)
	return outer
}
