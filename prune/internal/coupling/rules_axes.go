package coupling

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// concat concatenates channels, or values on another axis.
func concat(p *propagation, n *ir.Node) {
	lead := p.lead(n)
	if lead == nil {
		return
	}
	i := slices.IndexFunc(n.Inputs(), func(v *ir.Value) bool { return v != nil && p.axes[v] != nil })
	rank, ok := p.rank(n.Input(i))
	at := axisFromFirst(n.Int("axis", 1), rank) - rank
	switch {
	case !ok:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "rank"})
	case at != lead.at:
		p.concatOtherAxis(n, lead)
	default:
		p.concatChannels(n, at)
	}
}

// concatOtherAxis is a concatenation on another axis than that of channels.
func (p *propagation) concatOtherAxis(n *ir.Node, lead *axis) {
	for i := range n.Inputs() {
		a := p.in(n, i)
		if a == nil || a.at != lead.at || len(a.channels) != len(lead.channels) {
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "other channels"})
			return
		}
		p.classes.joinAll(a.channels, lead.channels)
	}
	p.set(n.Outputs[0], lead.at, lead.channels)
}

// maxWidth is larger than any number of channels: sizes that a model declares may be
// invalid.
const maxWidth = 1 << 24

func (p *propagation) concatChannels(n *ir.Node, at int) {
	var all []Channel
	for i, v := range n.Inputs() {
		a := p.in(n, i)
		if a != nil && a.at == at {
			all = append(all, a.channels...)
			continue
		}
		dims, ok := p.inferred.Of(v)
		if a != nil || !ok || len(dims)+at < 0 || !dims[len(dims)+at].Known() || dims[len(dims)+at].N > maxWidth {
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "unknown channels"})
			return
		}
		us := p.classes.fresh(dims[len(dims)+at].N)
		// Kept channels in their place: those of the following inputs have their indices after them.
		p.keep(n, us, pass.Reason{Code: pass.ChannelsAxis, Detail: "other values"})
		all = append(all, us...)
	}
	p.set(n.Outputs[0], at, all)
}

// split divides channels into ranges, or another axis, which does not affect them.
func split(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	if !ok {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "rank"})
		return
	}
	if axisFromFirst(n.Int("axis", 0), rank) != at {
		for _, v := range n.Outputs {
			p.set(v, a.at, a.channels)
		}
		return
	}
	sizes := p.sizes(n, len(a.channels))
	if sizes == nil {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "parts"})
		return
	}
	parts := make([][]Channel, len(sizes))
	rest := a.channels
	for i, size := range sizes {
		parts[i], rest = rest[:size], rest[size:]
		p.set(n.Outputs[i], a.at, parts[i])
	}
	p.onRemoval(a.channels, func(k *removal) { p.resplit(k, n, parts) })
}

// sizes are the lengths of n's parts, nil if they are not known or do not fit.
func (s shapes) sizes(n *ir.Node, total int) []int64 {
	sizes, ok := []int64(nil), true
	switch attr := n.Attr("split"); {
	case attr != nil:
		sizes = attr.Ints
	case n.Input(1) != nil:
		sizes, ok = n.Input(1).Ints()
	case total%len(n.Outputs) == 0:
		sizes = slices.Repeat([]int64{int64(total / len(n.Outputs))}, len(n.Outputs))
	}
	sum := int64(0)
	for _, s := range sizes {
		if s < 0 {
			return nil
		}
		sum += s
	}
	if !ok || len(sizes) != len(n.Outputs) || sum != int64(total) {
		return nil
	}
	return sizes
}

// inputSplits is the opset from which Split's sizes are an input.
const inputSplits = 13

func (p *propagation) resplit(k *removal, n *ir.Node, parts [][]Channel) {
	var sizes []int64
	for _, us := range parts {
		sizes = append(sizes, int64(len(k.keptIndices(us))))
	}
	if n.Graph().Opset("") < inputSplits {
		n.SetAttr(ir.IntsAttr("split", sizes...))
		return
	}
	n.RemoveAttr("num_outputs")
	p.setInts(n, 1, sizes)
}

// setInts makes a constant of integers n's input i.
func (s shapes) setInts(n *ir.Node, i int, is []int64) {
	old := n.Input(i)
	n.SetInput(i, s.step.Const(n.Graph(), ir.Int64, []int64{int64(len(is))}, ir.Ints(is...)))
	if old != nil {
		old.Drop()
	}
}

// transpose moves the axis.
func transpose(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	to := rank - 1 - at // without perm, axes are reversed
	if perm := n.Attr("perm"); perm != nil {
		to = slices.Index(perm.Ints, int64(at))
		outside := func(axis int64) bool { return axis < 0 || axis >= int64(rank) }
		ok = ok && len(perm.Ints) == rank && to >= 0 && !slices.ContainsFunc(perm.Ints, outside)
	}
	if !ok {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "rank"})
		return
	}
	p.set(n.Outputs[0], to-rank, a.channels)
	if dims := p.resolved[n.Input(0)]; len(dims) == rank {
		moved := slices.Clone(dims)
		slices.Reverse(moved)
		if perm := n.Attr("perm"); perm != nil {
			for i, from := range perm.Ints {
				moved[i] = dims[from]
			}
		}
		p.resolved[n.Outputs[0]] = moved
	}
}

func squeeze(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	axes, given := p.axesOf(n)
	if !ok || !given || len(axes) == 0 {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "axes"})
		return
	}
	to := a.at
	for _, x := range axes {
		switch x := axisFromFirst(x, rank); {
		case x == at:
			p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "removed axis"})
			return
		case x > at:
			to++
		}
	}
	p.set(n.Outputs[0], to, a.channels)
}

func unsqueeze(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	axes, given := p.axesOf(n)
	if !ok || !given {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsUnknown, Detail: "axes"})
		return
	}
	rank += len(axes)
	added := make([]bool, rank)
	for _, x := range axes {
		if x := axisFromFirst(x, rank); x >= 0 && x < rank {
			added[x] = true
		}
	}
	for to, is := range added {
		if is {
			continue
		}
		if at == 0 {
			p.set(n.Outputs[0], to-rank, a.channels)
			return
		}
		at--
	}
}

// gather looks up along an axis before that of the channels.
func gather(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	switch {
	case a == nil:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "indices"})
	case !ok || axisFromFirst(n.Int("axis", 0), rank) >= at:
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "lookup of some channels, or along a later axis"})
	default:
		p.set(n.Outputs[0], a.at, a.channels)
	}
}

// pad adds to other axes only.
func pad(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	pads, given := []int64(nil), true
	if attr := n.Attr("pads"); attr != nil {
		pads = attr.Ints
	} else {
		pads, given = n.Input(1).Ints()
	}
	if !ok || !given || n.Input(3) != nil || len(pads) != 2*rank || pads[at] != 0 || pads[rank+at] != 0 {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "padding of channels, or of unknown axes"})
		return
	}
	p.set(n.Outputs[0], a.at, a.channels)
}
