package coupling

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A counts is a Reshape or Expand whose target may be computed from numbers of channels, and the axis of the target
// that has channels, -1 where none has.
type counts struct {
	node *ir.Node
	*target
	at       int
	channels []Channel
}

// shape records the nodes that return a number of channels.
func shape(p *propagation, n *ir.Node) {
	if p.in(n, 0) != nil {
		p.counted = append(p.counted, n)
	}
}

// keepCounted keeps channels whose number is used other than as the size of an axis that has the same channels.
func (p *propagation) keepCounted() {
	reason := pass.Reason{Code: pass.ChannelsAxis, Detail: "number of channels"}
	for _, n := range p.counted {
		a, at, rank, ok := p.axisOf(n)
		from, to := clamp(n.Int("start", 0), int64(rank)), clamp(n.Int("end", int64(rank)), int64(rank))
		if !ok || at >= int(from) && at < int(to) && !p.onlyTargets(n.Outputs[0], at-int(from), int(to-from),
			map[*ir.Value]bool{}) {
			p.keep(n, a.channels, reason)
		}
	}
	for _, t := range p.targets {
		for i, e := range t.from {
			a := p.axes[e.of]
			if e.of == nil || a == nil || len(p.dims(e.of))+a.at != e.axis {
				continue
			}
			if a.outer || i != t.at || !p.repeats(t.channels, a.channels, int(e.times)) {
				p.keep(t.node, slices.Concat(a.channels, t.channels), reason)
			}
		}
	}
}

// repeats reports whether us are those of each class of once, times as many.
func (p *propagation) repeats(us, once []Channel, times int) bool {
	count := map[Channel]int{}
	for _, u := range us {
		count[p.class(u)]++
	}
	for _, u := range once {
		count[p.class(u)] -= times
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// onlyTargets reports whether an item of a vector v of the given length, or any item if that is negative, is used for
// nothing but sizes of targets that are known.
func (p *propagation) onlyTargets(v *ir.Value, item, length int, seen map[*ir.Value]bool) bool {
	if seen[v] {
		return true
	}
	seen[v] = item < 0
	for _, u := range v.Uses() {
		if u.Node == nil || !p.onlyTarget(u, item, length, seen) {
			return false
		}
	}
	return true
}

func (p *propagation) onlyTarget(u ir.Use, item, length int, seen map[*ir.Value]bool) bool {
	n, f := u.Node, operator.Of(u.Node)
	if slices.ContainsFunc(p.targets, func(t counts) bool { return t.node == n && u.Index == 1 }) {
		return true
	}
	switch {
	case n.Op.Is("Shape"):
		return true
	case u.Index == 0 && f.Move == operator.Picks && item >= 0:
		if at, ok := p.picks(n, length); ok && !slices.Contains(at, item) {
			return true
		}
	}
	if sizeRules()[operator.Name(n.Op)] == nil && f.Elementwise == operator.NotElementwise && f.Move != operator.View {
		return false
	}
	return p.onlyTargets(n.Outputs[0], -1, 0, seen)
}
