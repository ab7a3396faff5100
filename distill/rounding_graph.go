package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// put lets nodes read what weights and activations are rounded to. It adds the arrays that the graph is fed with.
func (r *rounding) put(tape *grad.Tape, feeds map[string]*ir.Array) {
	if r == nil {
		return
	}
	p := &putting{Tape: tape, feeds: feeds, weights: map[*ir.Value]bool{}, seen: map[*ir.Value]*ir.Value{}}
	for _, param := range tape.Params {
		if w := r.weights[param.Name]; w != nil {
			p.weight(param.Value, w.array)
		}
	}
	for _, n := range slices.Collect(tape.Graph().Nodes()) {
		for i, v := range n.Inputs() {
			switch c := r.codes[edgeOf(n, i)]; {
			case v == nil || v.Const != nil:
			case c != nil:
				n.SetInput(i, p.once(v, func() *ir.Value { return p.coded(n, v, c) }))
			case r.dynamic && i < 2 && multiplies(n) && p.isRounded(n.Input(1-i)):
				n.SetInput(i, p.once(v, func() *ir.Value { return p.dynamic(n, v) }))
			}
		}
	}
}

// multiplies reports whether n is a product of two matrices, which are its first inputs.
func multiplies(n *ir.Node) bool {
	return (n.Op.Is("MatMul") || n.Op.Is("Gemm")) && len(n.Inputs()) >= 2
}

// putting puts rounding into a graph.
type putting struct {
	*grad.Tape
	feeds   map[string]*ir.Array
	weights map[*ir.Value]bool      // what stands for weights
	seen    map[*ir.Value]*ir.Value // what stands for activations
}

// weight puts what q holds in the place of a parameter.
func (p *putting) weight(v *ir.Value, q *ir.Array) {
	uses := slices.Clone(v.Uses())
	n := p.New(straightThrough, []*ir.Value{p.fed(v.Name+".rounded", q), v})
	p.Graph().InsertBefore(p.Graph().First(), n)
	p.weights[n.Outputs[0]] = true
	for _, u := range uses {
		if u.Node != nil {
			u.Node.SetInput(u.Index, n.Outputs[0])
		}
	}
}

var straightThrough = ir.OpID{Domain: "mcompress", Type: "StraightThrough"}

// fed is an input for an array.
func (p *putting) fed(hint string, a *ir.Array) *ir.Value {
	in := p.Input(hint, a.DType, a.Shape...)
	p.feeds[in.Name] = a
	return in
}

// isRounded reports whether v is a rounded weight, or one turned.
func (p *putting) isRounded(v *ir.Value) bool {
	for v != nil && !p.weights[v] {
		n := v.Producer()
		if n == nil || !n.Op.Is("Transpose") && !n.Op.Is("Reshape") && !n.Op.Is("Identity") {
			return false
		}
		v = n.Input(0)
	}
	return v != nil
}

// once is what stands for v, for all its readers.
func (p *putting) once(v *ir.Value, f func() *ir.Value) *ir.Value {
	if p.seen[v] == nil {
		p.seen[v] = f()
	}
	return p.seen[v]
}

// coded is v after codes of a range and back. Where v is beyond the range its gradient is 0, as that of Clip is.
func (p *putting) coded(at *ir.Node, v *ir.Value, c *codes) *ir.Value {
	scale, zero := p.fed("scale", c.scale), p.fed("zero", c.zero)
	q := p.before(at, "QuantizeLinear", v, scale, zero)
	within := p.before(at, "Clip", v, p.fed("low", c.low), p.fed("high", c.high))
	return p.straight(at, p.before(at, "DequantizeLinear", q, scale, zero), within)
}

// dynamic is v after codes of its own range and back.
func (p *putting) dynamic(at *ir.Node, v *ir.Value) *ir.Value {
	g := p.Graph()
	q := g.NewNode(ir.OpID{Domain: op.Newest, Type: "DynamicQuantizeLinear"}, []*ir.Value{v})
	q.SetOutputs(g.NewValue("q"), g.NewValue("scale"), g.NewValue("zero"))
	g.InsertBefore(at, q)
	return p.straight(at, p.before(at, "DequantizeLinear", q.Outputs...), v)
}

func (p *putting) before(at *ir.Node, typ string, in ...*ir.Value) *ir.Value {
	n := p.New(ir.OpID{Domain: op.Newest, Type: typ}, in)
	p.Graph().InsertBefore(at, n)
	return n.Outputs[0]
}

// straight is q with the gradient of x.
func (p *putting) straight(at *ir.Node, q, x *ir.Value) *ir.Value {
	n := p.New(straightThrough, []*ir.Value{q, x})
	p.Graph().InsertBefore(at, n)
	return n.Outputs[0]
}
