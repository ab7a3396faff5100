package coupling

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// flatten merges the axes from its attribute on: those before the channels, that of the channels, and those after it.
func flatten(p *propagation, n *ir.Node) {
	a, at, rank, ok := p.axisOf(n)
	if a == nil {
		return
	}
	from := axisFromFirst(n.Int("axis", 1), rank)
	if !ok || at < from {
		p.unsupported(n, pass.Reason{Code: pass.ChannelsAxis, Detail: "first axis"})
		return
	}
	dims, _ := p.inferred.Of(n.Input(0))
	if channels := p.mergeChannels(n, a.channels, dims[from:at], dims[at+1:]); channels != nil {
		p.set(n.Outputs[0], -1, channels)
	}
}

// mergeChannels are the channels of an axis that merges before × channels × after. An unknown size follows from the
// width that a consumer expects. It is nil, and the channels are kept, where sizes are not known.
func (p *propagation) mergeChannels(n *ir.Node, channels []Channel, before, after []ir.Dim) []Channel {
	b, okB := product(before)
	e, okE := product(after)
	if !okE || !okB {
		width, ok := p.width(n.Outputs[0])
		rest := width / int64(len(channels))
		switch {
		case !ok || rest*int64(len(channels)) != width:
			p.keep(n, channels, pass.Reason{Code: pass.ChannelsUnknown, Detail: "sizes of flattened axes"})
			return nil
		case okB && rest%max(b, 1) == 0:
			e = rest / max(b, 1)
		case okE && rest%max(e, 1) == 0:
			b = rest / max(e, 1)
		default:
			p.keep(n, channels, pass.Reason{Code: pass.ChannelsUnknown, Detail: "sizes of flattened axes"})
			return nil
		}
	}
	if e < 1 || b < 1 || e > maxWidth/int64(len(channels)) || b > maxWidth/(e*int64(len(channels))) {
		p.keep(n, channels, pass.Reason{Code: pass.ChannelsUnknown, Detail: "sizes of flattened axes"})
		return nil
	}
	var one []Channel
	for _, u := range channels {
		// Row-major: each channel has the elements after it, and all channels repeat for each index of the axes before.
		one = append(one, slices.Repeat([]Channel{u}, int(e))...)
	}
	return slices.Repeat(one, int(b))
}

func product(dims []ir.Dim) (int64, bool) {
	n := int64(1)
	for _, d := range dims {
		if !d.Known() {
			return 0, false
		}
		n *= d.N
	}
	return n, true
}

// width is the length of v's last axis, from its type, or else from its consumers.
func (s shapes) width(v *ir.Value) (int64, bool) {
	if dims, ok := s.inferred.Of(v); ok && len(dims) > 0 && dims[len(dims)-1].Known() {
		return dims[len(dims)-1].N, true
	}
	for _, u := range v.Uses() {
		if u.Node == nil {
			continue
		}
		if o := pass.Trace(u.Node.Input(1)); o != nil && o.Trouble.None() && u.Index == 0 && len(o.Shape) == 2 {
			in := operator.Of(u.Node).Input(1)
			if axes, ok := in.Axes(u.Node, 2); ok && in.Role == operator.Matrix {
				return o.Shape[axes.Reduction[0]], true
			}
		}
		if operator.Of(u.Node).Elementwise == operator.Unary {
			if w, ok := s.width(u.Node.Outputs[0]); ok {
				return w, true
			}
		}
	}
	return 0, false
}
