package coupling

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// elementwise joins the channels of inputs that broadcast with one another. What maps zero
// to something else is fine: a channel that falls is not read any more.
func elementwise(p *Plan, n *ir.Node) {
	lead := p.lead(n)
	if lead == nil {
		return
	}
	if n.Attr("broadcast") != nil || n.Attr("consumed_inputs") != nil {
		p.stop(n, "broadcasts by an attribute")
		return
	}
	for i := range n.Inputs() {
		p.beside(n, i, lead)
	}
	for _, v := range n.Outputs { // Dropout has a mask
		p.set(v, lead.at, lead.units)
	}
}

// lead is the axis with most channels among n's inputs.
func (p *Plan) lead(n *ir.Node) *axis {
	var lead *axis
	for i := range n.Inputs() {
		if a := p.in(n, i); a != nil && (lead == nil || len(a.units) > len(lead.units)) {
			lead = a
		}
	}
	return lead
}

// beside makes n's input i go along with channels that it is broadcast to.
func (p *Plan) beside(n *ir.Node, i int, lead *axis) {
	v := n.Input(i)
	if v == nil {
		return
	}
	a := p.in(n, i)
	switch {
	case a == lead:
	case a != nil && a.at == lead.at && len(a.units) == len(lead.units):
		p.classes.joinAll(a.units, lead.units)
	case a != nil && a.at == lead.at && len(a.units) == 1:
		p.keep(n, a.units, "broadcasts it")
	case a != nil:
		p.keep(n, slices.Concat(a.units, lead.units), "brings together channels on different axes")
	default:
		p.whole(n, i, lead)
	}
}

// whole is beside for an input without channels of its own: a constant, or a value with
// one element on that axis.
func (p *Plan) whole(n *ir.Node, i int, lead *axis) {
	v := n.Input(i)
	dims, ok := opset.Shape(v)
	if o := p.c.Trace(v); o != nil && o.Trouble == "" {
		dims, ok = known(o.Shape), true
	}
	k := len(dims) + lead.at
	switch {
	case !ok:
		p.keep(n, lead.units, fmt.Sprintf("brings them together with %q, whose shape is not known", v.Name))
	case k < 0 || dims[k] == (ir.Dim{N: 1}):
	case p.c.Trace(v) == nil:
		p.keep(n, lead.units, fmt.Sprintf("brings them together with %q, whose channels stay", v.Name))
	default:
		units := make([][]Unit, len(dims))
		units[k] = lead.units
		p.read(n, i, units...)
	}
}

func known(shape []int64) []ir.Dim {
	dims := make([]ir.Dim, len(shape))
	for i, d := range shape {
		dims[i] = ir.Dim{N: d}
	}
	return dims
}
