package crosslayer

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// pairs are the layers of m in order, with the layers that consume their channels.
func pairs(e *rescale.Editor, m *ir.Model) []*pair {
	var ps []*pair
	sides := map[*ir.Value]*side{}
	at := func(l *rescale.Layer) *side {
		if sides[l.Weight] == nil {
			sides[l.Weight] = &side{layer: l}
		}
		return sides[l.Weight]
	}
	for n := range m.Nodes() {
		l, reason := e.Layer(n)
		if !reason.None() || l.Node != n {
			continue
		}
		f := &finder{e: e, channels: l.Outputs, spatial: l.Spatial()}
		p := &pair{from: at(l)}
		if p.reason = f.follow(l.Output(), 1); p.reason.None() {
			for i, r := range f.found {
				p.to = append(p.to, &consumer{at(r), f.each[i]})
			}
		}
		ps = append(ps, p)
	}
	return ps
}

// A finder finds the layers that consume a value's channels.
type finder struct {
	e        *rescale.Editor
	channels int64
	spatial  bool // channels are axis 1 of more than two
	found    []*rescale.Layer
	each     []int64
}

// follow visits the consumers of v, depth first; it returns the reason if not all are layers. Chains may be as long as
// the graph, so that it does not recurse.
func (f *finder) follow(v *ir.Value, each int64) pass.Reason {
	var pending []ir.Use
	for v != nil || len(pending) > 0 {
		if v != nil {
			if len(v.Uses()) == 0 {
				return pass.Reason{Code: pass.Unused}
			}
			for _, u := range slices.Backward(v.Uses()) {
				pending = append(pending, u)
			}
		}
		u := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		var reason pass.Reason
		// All consumers or none: a channel is scaled for each of them.
		if v, reason = f.use(u, each); !reason.None() {
			return reason
		}
	}
	return pass.Reason{}
}

// use adds the layer that u belongs to, or returns the value through which the channels go on.
func (f *finder) use(u ir.Use, each int64) (*ir.Value, pass.Reason) {
	n := u.Node
	switch {
	case n == nil:
		return nil, pass.Reason{Code: pass.GraphOutput}
	// As a weight, a bias or an index, channels are not passed on.
	case u.Index != 0 || !ir.DefaultDomain(n.Op.Domain):
		return nil, pass.Reason{Code: pass.Channels}.At(n)
	// A channel becomes a run of inputs, one per position.
	case n.Op.Is("Flatten") && f.spatial && n.Int("axis", 1) == 1:
		return nil, f.flat(n)
	case f.isHomogeneous(n):
		return through(n)
	case n.Op.Is("Clip"):
		// Clip(f·x) is not f·Clip(x), unless the limits are scaled for each channel.
		return nil, pass.Reason{Code: pass.Channels, Detail: "one limit for all channels"}.At(n)
	}
	l, reason := f.e.Layer(n)
	switch {
	case reason.Code == pass.NoLayer:
		return nil, pass.Reason{Code: pass.Channels}.At(n)
	case !reason.None():
		return nil, reason
	// Channels on another axis than the layer's inputs are not these.
	case l.Node != n || l.Spatial() != f.spatial || l.Inputs != f.channels*each:
		return nil, pass.Reason{Code: pass.Channels, Detail: "other layout of channels"}.At(n)
	}
	f.found, f.each = append(f.found, l), append(f.each, each)
	return nil, pass.Reason{}
}

// isHomogeneous reports whether n passes factors of channels on. Pooling does for channels on axis 1 of a spatial
// value; a view may move them to another axis.
func (f *finder) isHomogeneous(n *ir.Node) bool {
	facts := operator.Of(n)
	return facts.Homogeneous && (facts.Elementwise != operator.NotElementwise || f.spatial && facts.PerChannel)
}

// through is the output of a homogeneous operator. MaxPool's Indices are not channels.
func through(n *ir.Node) (*ir.Value, pass.Reason) {
	for _, v := range n.Outputs[1:] {
		if v != nil {
			return nil, pass.Reason{Code: pass.Channels, Detail: "more than one output"}.At(n)
		}
	}
	return n.Outputs[0], pass.Reason{}
}

// flat follows a Flatten: each channel becomes one input per position.
func (f *finder) flat(n *ir.Node) pass.Reason {
	g := &finder{e: f.e, channels: f.channels}
	shape, ok := opset.Shape(n.Input(0))
	each := int64(1)
	for i, d := range shape {
		ok = ok && (i == 0 || d.N > 0)
		if i > 1 {
			each *= d.N
		}
	}
	if !ok {
		return pass.Reason{Code: pass.Channels, Detail: "unknown input shape"}.At(n)
	}
	reason := g.follow(n.Outputs[0], each)
	f.found, f.each = append(f.found, g.found...), append(f.each, g.each...)
	return reason
}
