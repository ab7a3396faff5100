package coupling

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// all are a's channels, none for nil.
func (a *axis) all() []Channel {
	if a == nil {
		return nil
	}
	return a.channels
}

// filters is the shape of n's constant input 1 where it is one of a convolution.
func (s shapes) filters(n *ir.Node) []int64 {
	o := pass.Trace(n.Input(1))
	if o == nil || !o.Trouble.None() || len(o.Shape) < 3 || o.Base.Const.Elems() == 0 {
		return nil
	}
	return o.Shape
}

// conv reads input channels on the filters' second axis and makes one for each filter. In
// groups, each one loses as many channels, at the same indices; where a group reads one
// channel only (depthwise), groups are pruned whole.
func conv(p *propagation, n *ir.Node) {
	in, w := p.in(n, 0), p.filters(n)
	if w == nil || in != nil && in.at != 1-len(w) {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsConstant, Detail: "no constant filters"})
		return
	}
	group, out := n.Int("group", 1), p.classes.fresh(w[0])
	if group < 1 || w[0]%group != 0 || in != nil && int64(len(in.channels)) != group*w[1] {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsConstant,
			Detail: fmt.Sprintf("filters of shape %v in %d groups", w, group)})
		return
	}
	channels := make([][]Channel, len(w))
	channels[0] = out
	switch {
	case group > 1 && w[1] == 1:
		p.depthwise(n, in, out)
	case group > 1:
		p.classes.foldParts(out, group)
		if in != nil {
			p.classes.foldParts(in.channels, group)
			channels[1] = in.channels[:w[1]]
		}
	case in != nil:
		channels[1] = in.channels
	}
	p.setProduct(n, 0, out, 1-len(w), channels)
}

// setProduct ends the rule of an operator with weights at input 1 and an optional bias at input 2.
func (p *propagation) setProduct(n *ir.Node, axis int, out []Channel, at int, channels [][]Channel) {
	p.readConstant(n, 1, channels...)
	p.vector(n, 2, out)
	p.product(n, 1, channels, axis)
	p.set(n.Outputs[0], at, out)
}

// depthwise joins each input channel with the filters that read nothing else.
func (p *propagation) depthwise(n *ir.Node, in *axis, out []Channel) {
	if in == nil {
		p.keep(n, out, pass.Reason{Code: pass.ChannelsConstant, Detail: "depthwise filters"})
		return
	}
	each := len(out) / len(in.channels)
	for i, u := range out {
		p.classes.join(u, in.channels[i/each])
	}
	p.onRemoval(in.channels, func(k *removal) {
		n.SetAttr(ir.IntAttr("group", int64(len(k.keptIndices(in.channels)))))
	})
}

// convTranspose is conv with the first two axes of its filters exchanged.
func convTranspose(p *propagation, n *ir.Node) {
	in, w := p.in(n, 0), p.filters(n)
	if w == nil || in != nil && (in.at != 1-len(w) || int64(len(in.channels)) != w[0]) {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsConstant, Detail: "no constant filters"})
		return
	}
	channels := make([][]Channel, len(w))
	switch group := n.Int("group", 1); {
	case group == 1:
		out := p.classes.fresh(w[1])
		channels[0], channels[1] = in.all(), out
		p.setProduct(n, 1, out, 1-len(w), channels)
	case group == w[0] && w[1] == 1:
		out := p.classes.fresh(group)
		channels[0] = out
		p.depthwise(n, in, out)
		p.setProduct(n, 0, out, 1-len(w), channels)
	default:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsConstant, Detail: fmt.Sprintf("%d groups", group)})
	}
}

// gemm reads channels on the last axis of input 0.
func gemm(p *propagation, n *ir.Node) {
	in := p.in(n, 0)
	o := pass.Trace(n.Input(1))
	if !matrix(o) || in != nil && (in.at != -1 || n.Int("transA", 0) != 0) {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsConstant, Detail: "no constant matrix"})
		return
	}
	axes, _ := operator.Of(n).Input(1).Axes(n, 2)
	channels, axis := make([][]Channel, 2), axes.Output[0]
	out := p.classes.fresh(o.Shape[axis])
	channels[axis], channels[1-axis] = out, in.all()
	p.readConstant(n, 1, channels...)
	p.product(n, 1, channels, axis)
	p.set(n.Outputs[0], -1, out)
	p.broadcast(n, 2, p.axes[n.Outputs[0]])
}

// matmul is a linear layer where one side is a constant matrix. Of two activations,
// channels may be on the reduction axis, or on an axis that it keeps.
func matmul(p *propagation, n *ir.Node) {
	a, b := p.in(n, 0), p.in(n, 1)
	left, right := pass.Trace(n.Input(0)), pass.Trace(n.Input(1))
	switch {
	case left == nil && matrix(right):
		p.rightMatrix(n, a, right.Shape[1])
	case right == nil && matrix(left):
		p.leftMatrix(n, b, left.Shape[0])
	case left != nil || right != nil:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsConstant, Detail: "not a matrix"})
	case a != nil || b != nil:
		p.matmulActivations(n, a, b)
	}
}

func matrix(o *pass.Operand) bool {
	return o != nil && o.Trouble.None() && len(o.Shape) == 2 && o.Base.Const.Elems() > 0
}

// leftMatrix is a product with a constant left matrix.
func (p *propagation) leftMatrix(n *ir.Node, b *axis, height int64) {
	rank, ok := p.rank(n.Input(1))
	if !ok || rank == 0 || b != nil && b.at != -min(rank, 2) {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "columns"})
		return
	}
	out := p.classes.fresh(height)
	channels := [][]Channel{out, b.all()}
	p.readConstant(n, 0, channels...)
	p.product(n, 0, channels, 0)
	p.set(n.Outputs[0], -min(rank, 2), out)
}

func (p *propagation) rightMatrix(n *ir.Node, a *axis, width int64) {
	if a != nil && a.at == -2 { // one product for each channel
		p.set(n.Outputs[0], -2, a.channels)
		return
	}
	if a != nil && a.at != -1 {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "channels on an axis other than rows"})
		return
	}
	out := p.classes.fresh(width)
	p.setProduct(n, 1, out, -1, [][]Channel{a.all(), out})
}

func (p *propagation) matmulActivations(n *ir.Node, a, b *axis) {
	switch {
	case a != nil && b != nil && a.at == -1 && b.at == -2 && len(a.channels) == len(b.channels):
		p.classes.joinAll(a.channels, b.channels)
	case a != nil && b != nil && a.at < -2 && a.at == b.at && len(a.channels) == len(b.channels):
		p.classes.joinAll(a.channels, b.channels)
		p.attend(n, a.channels)
		p.set(n.Outputs[0], a.at, a.channels)
		if x, y := p.dims(n.Input(0)), p.dims(n.Input(1)); len(x) == len(y) && len(x) > 0 {
			p.resolved[n.Outputs[0]] = append(x[:len(x)-1], y[len(y)-1])
		}
	case b == nil && a.at == -2:
		p.set(n.Outputs[0], -2, a.channels)
	case a == nil && b.at == -1:
		p.set(n.Outputs[0], -1, b.channels)
	default:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "product of channels"})
	}
}

// recurrent reads channels of the sequence; its channels are not followed.
func recurrent(p *propagation, n *ir.Node) {
	x := p.in(n, 0)
	if x == nil {
		return
	}
	if x.at != -1 || n.Int("layout", 0) != 0 {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "channels on an axis other than the last"})
		return
	}
	channels := [][]Channel{nil, nil, x.channels}
	p.readConstant(n, 1, channels...)
	p.product(n, 1, channels, none)
}
