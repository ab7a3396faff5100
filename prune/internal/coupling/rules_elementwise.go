package coupling

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// elementwise joins the channels of inputs that broadcast with one another. A function
// with f(0) ≠ 0 is supported: a pruned channel has no consumers.
func elementwise(p *propagation, n *ir.Node) {
	lead := p.lead(n)
	if lead == nil {
		p.resolveBroadcast(n)
		return
	}
	if n.Attr("broadcast") != nil || n.Attr("consumed_inputs") != nil {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "attributes broadcast and axis"})
		return
	}
	for i := range n.Inputs() {
		p.broadcast(n, i, lead)
	}
	for _, v := range n.Outputs { // Dropout has a mask
		p.set(v, lead.at, lead.channels)
		p.resolve(n, v, lead)
	}
}

// resolve gives sizes of v that are not known those of the input with most channels, as masks and biases are broadcast
// to it.
func (p *propagation) resolve(n *ir.Node, v *ir.Value, lead *axis) {
	i := slices.IndexFunc(n.Inputs(), func(x *ir.Value) bool { return x != nil && p.axes[x] == lead })
	if i < 0 || v == nil {
		return
	}
	dims, given := p.dims(n.Input(i)), p.dims(v)
	for k := range given {
		if len(given) == len(dims) && given[k].Known() {
			dims[k] = given[k]
		}
	}
	if len(given) <= len(dims) {
		p.resolved[v] = dims
	}
}

// resolveBroadcast gives n's outputs the sizes that follow from inputs without channels, some of which are resolved,
// such as those of masks.
func (p *propagation) resolveBroadcast(n *ir.Node) {
	dims, resolved := []ir.Dim{}, false
	for _, v := range n.Inputs() {
		in, ok := p.operandDims(v)
		if v != nil && !ok {
			return
		}
		dims, resolved = opset.Broadcast(dims, in), resolved || p.resolved[v] != nil
	}
	if resolved {
		for _, v := range n.Outputs {
			p.resolved[v] = dims
		}
	}
}

// operandDims are the sizes of an operand's axes, ok is false if their number is not known.
func (p *propagation) operandDims(v *ir.Value) (dims []ir.Dim, ok bool) {
	if o := pass.Trace(v); o != nil && o.Trouble.None() {
		return knownDims(o.Shape), true
	}
	dims = p.dims(v)
	return dims, dims != nil
}

// lead is the axis with most channels among n's inputs.
func (p *propagation) lead(n *ir.Node) *axis {
	var lead *axis
	for i := range n.Inputs() {
		if a := p.in(n, i); a != nil && (lead == nil || len(a.channels) > len(lead.channels)) {
			lead = a
		}
	}
	return lead
}

// broadcast joins the channels of n's input i with those that it is broadcast to.
func (p *propagation) broadcast(n *ir.Node, i int, lead *axis) {
	v := n.Input(i)
	if v == nil {
		return
	}
	a := p.in(n, i)
	switch {
	case a == lead:
	case a != nil && a.at == lead.at && len(a.channels) == len(lead.channels):
		p.classes.joinAll(a.channels, lead.channels)
	case a != nil && a.at == lead.at && len(a.channels) == 1:
		p.keep(n, a.channels, pass.Reason{Code: pass.ChannelsAxis, Detail: "broadcast of one channel"})
	case a != nil:
		p.keep(n, slices.Concat(a.channels, lead.channels),
			pass.Reason{Code: pass.ChannelsAxis, Detail: "channels on different axes"})
	default:
		p.broadcastConstant(n, i, lead)
	}
}

// broadcastConstant is broadcast for an input without channels of its own: a constant, or a value with
// one element on that axis.
func (p *propagation) broadcastConstant(n *ir.Node, i int, lead *axis) {
	v := n.Input(i)
	dims, ok := p.operandDims(v)
	k := len(dims) + lead.at
	switch {
	case !ok:
		p.keep(n, lead.channels, pass.Reason{Code: pass.ChannelsUnknown, Detail: "shape of " + v.Name})
	case k < 0 || dims[k] == (ir.Dim{N: 1}):
	case pass.Trace(v) == nil:
		p.keep(n, lead.channels, pass.Reason{Code: pass.ChannelsAxis, Detail: "kept channels of " + v.Name})
	default:
		channels := make([][]Channel, len(dims))
		channels[k] = lead.channels
		p.readConstant(n, i, channels...)
	}
}

func knownDims(shape []int64) []ir.Dim {
	dims := make([]ir.Dim, len(shape))
	for i, d := range shape {
		dims[i] = ir.Dim{N: d}
	}
	return dims
}
