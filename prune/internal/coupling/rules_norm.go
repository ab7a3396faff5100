package coupling

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// axisOf is the axis of n's input 0 counted from the first one, and the rank; ok is false
// where the rank is not known.
func (p *propagation) axisOf(n *ir.Node) (a *axis, at, rank int, ok bool) {
	a = p.in(n, 0)
	if a == nil {
		return nil, 0, 0, false
	}
	rank, ok = p.rank(n.Input(0))
	return a, rank + a.at, rank, ok && rank+a.at >= 0
}

// axisFromFirst is an axis attribute counted from the first axis.
func axisFromFirst(axis int64, rank int) int {
	if axis < 0 {
		return int(axis) + rank
	}
	return int(axis)
}

// batchNormalization has four numbers for each channel.
func batchNormalization(p *propagation, n *ir.Node) {
	p.perChannel(n, 1, 2, 3, 4)
}

func instanceNormalization(p *propagation, n *ir.Node) {
	p.perChannel(n, 1, 2)
}

// perChannel is a normalization of single channels, with vectors at those inputs.
func (p *propagation) perChannel(n *ir.Node, vectors ...int) {
	a, at, _, ok := p.axisOf(n)
	switch {
	case a == nil:
		return
	case !ok || at != 1 || len(n.Outputs) > 1 && n.Outputs[1] != nil:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "channels on an axis other than 1"})
		return
	}
	for _, i := range vectors {
		p.vector(n, i, a.channels)
	}
	p.set(n.Outputs[0], a.at, a.channels)
}

// normalizationRule is an operator that normalizes over an axis and the following ones.
func normalizationRule(axis int64) rule {
	return func(p *propagation, n *ir.Node) {
		a, at, rank, ok := p.axisOf(n)
		switch {
		case a == nil:
		case !ok:
			p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "rank"})
		case at >= axisFromFirst(n.Int("axis", axis), rank):
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "normalization over channels"})
		default:
			p.set(n.Outputs[0], a.at, a.channels)
		}
	}
}

// softmax normalizes over one axis; before opset 13, over all from that one on.
func softmax(p *propagation, n *ir.Node) {
	if n.Graph().Opset("") < 13 {
		normalizationRule(1)(p, n)
		return
	}
	a, at, rank, ok := p.axisOf(n)
	switch {
	case a == nil:
	case !ok:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "rank"})
	case at == axisFromFirst(n.Int("axis", -1), rank):
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "normalization over channels"})
	default:
		p.set(n.Outputs[0], a.at, a.channels)
	}
}

// pool computes each channel from the same channel.
func pool(p *propagation, n *ir.Node) {
	a, at, _, ok := p.axisOf(n)
	switch {
	case a == nil:
	case !ok || at != 1:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "channels on an axis other than 1"})
	case len(n.Outputs) > 1 && n.Outputs[1] != nil:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "indices that count channels"})
	default:
		p.set(n.Outputs[0], a.at, a.channels)
	}
}

// reduce drops or shrinks other axes.
func reduce(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	axes, given := p.axesOf(n)
	if !ok || !given || len(axes) == 0 {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "axes"})
		return
	}
	after := 0
	for _, x := range axes {
		switch x := axisFromFirst(x, rank); {
		case x == at:
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "reduced axis"})
			return
		case x > at:
			after++
		}
	}
	if n.Int("keepdims", 1) != 0 {
		after = 0
	}
	p.set(n.Outputs[0], a.at+after, a.channels)
}

// axesOf are n's axes by attribute, or by input 1 in newer opsets; none where it has neither.
func (s shapes) axesOf(n *ir.Node) (axes []int64, ok bool) {
	if a := n.Attr("axes"); a != nil {
		return a.Ints, true
	}
	if n.Input(1) == nil {
		return nil, true
	}
	return n.Input(1).Ints()
}
