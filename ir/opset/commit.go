package opset

import (
	"github.com/mcompress/mcompress/ir"
)

// A constKey names a new constant: equal ones of a graph are stored once.
type constKey struct {
	graph *ir.Graph
	spec  string
	bytes string
}

// commit applies d to its node. It cannot fail.
func (d *draft) commit() {
	if d.tail != nil {
		d.replace()
		return
	}
	n := d.node
	in := d.values(n, d.in)
	n.Op.Type, n.Attrs = d.op, d.attrs
	n.TrimInputs(len(in))
	for i, v := range in {
		n.SetInput(i, v)
	}
	n.Outputs = n.Outputs[:d.outputs]
}

// replace puts a new node in d's place, as the tail has to follow it and takes its
// output over.
func (d *draft) replace() {
	n, g := d.node, d.node.Graph()
	main := g.NewNode(ir.OpID{Domain: n.Op.Domain, Type: d.op}, d.values(n, d.in), d.attrs...)
	main.Name, main.Extra = n.Name, n.Extra
	d.result = g.NewValue("t")
	main.SetOutputs(d.result)
	g.InsertBefore(n, main)
	tail := g.NewNode(ir.OpID{Type: d.tail.op}, d.values(n, d.tail.in), d.tail.attrs...)
	g.InsertBefore(n, tail)
	out := n.Outputs[0]
	// The old node releases the output before it is removed, which marks its outputs as removed.
	n.SetOutputs()
	n.Remove()
	tail.SetOutputs(out)
}

// values are the operands as values of at's graph, new nodes before at.
func (d *draft) values(at *ir.Node, os []operand) []*ir.Value {
	vs := make([]*ir.Value, len(os))
	for i, o := range os {
		switch {
		case o.tensor != nil:
			vs[i] = d.p.constant(at.Graph(), o.tensor)
		case o.node != nil:
			vs[i] = o.node.insert(at)
		default:
			vs[i] = o.value
		}
	}
	return vs
}

// insert places a new node before at, unless that was done before.
func (d *draft) insert(at *ir.Node) *ir.Value {
	if d.result == nil {
		d.result = at.Graph().Insert(at, d.op, d.values(at, d.in), d.attrs...)
	}
	return d.result
}

// constant returns t as a constant of g.
func (p *planner) constant(g *ir.Graph, t *ir.Tensor) *ir.Value {
	key := constKey{g, t.Spec.String(), string(t.Source.(ir.Mem))}
	v := p.constants[key]
	if v == nil {
		v = g.AddConst("c", t)
		t.Name = v.Name
		p.constants[key] = v
	}
	return v
}
