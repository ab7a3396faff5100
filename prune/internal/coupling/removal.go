package coupling

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Group is the sources whose channels are pruned together, and the classes of those channels.
type Group struct {
	Sources []Source    // their channels are those in Classes
	Classes []Channel   // one channel for each class, in the order of the sources
	Each    int         // maximum number of channels of a class in one source
	Heads   bool        // the channels are those of attention heads
	Reason  pass.Reason // why all channels are kept, if they have to be
}

// class is the representative of u's class.
func (ch *channelMap) class(u Channel) Channel { return ch.classes.root(u) }

// Keep keeps the channels of classes, for a reason that Kept repeats.
func (p *Plan) Keep(classes []Channel, reason pass.Reason) { p.classes.keep(classes, reason) }

// Groups are the groups in the order of the graph.
func (p *Plan) Groups() []*Group {
	of := map[Channel]*Group{}
	var all []*Group
	for _, s := range p.sources {
		g := p.groupOf(of, s)
		if len(g.Sources) == 0 {
			all = append(all, g)
		}
		g.Sources = append(g.Sources, s)
	}
	heads := p.headClasses()
	for _, g := range all {
		g.Heads = slices.ContainsFunc(g.Sources, func(s Source) bool {
			return slices.ContainsFunc(s.Channels, func(u Channel) bool { return heads[p.class(u)] })
		})
	}
	return slices.DeleteFunc(all, func(g *Group) bool { return len(g.Sources) == 0 || !p.complete(g) })
}

// Sources are the constants that make channels, with their classes.
func (p *Plan) Sources() []Source { return p.withClasses(p.sources) }

// Consumers are the constants that channels are multiplied by, with their classes.
func (p *Plan) Consumers() []Source { return p.withClasses(p.consumers) }

// Axes are the axes of values and constants that hold channels, each as its classes: one that loses all of them has no
// element left.
func (p *Plan) Axes() [][]Channel {
	var all [][]Channel
	add := func(us []Channel) {
		var list []Channel
		seen := map[Channel]bool{}
		for _, u := range us {
			if r := p.class(u); !seen[r] {
				seen[r], list = true, append(list, r)
			}
		}
		all = append(all, list)
	}
	for _, v := range p.keys {
		add(p.axes[v].channels)
	}
	for _, list := range [][]Source{p.sources, p.consumers} {
		for _, s := range list {
			add(s.Channels)
		}
	}
	return all
}

func (p *Plan) withClasses(list []Source) []Source {
	list = slices.Clone(list)
	for i := range list {
		list[i].Channels = slices.Clone(list[i].Channels)
		for j, u := range list[i].Channels {
			list[i].Channels[j] = p.class(u)
		}
	}
	return list
}

// groupOf is the group that s belongs to: all groups with a class of s are merged.
func (p *Plan) groupOf(of map[Channel]*Group, s Source) *Group {
	var g *Group
	for _, u := range s.Channels {
		r := p.class(u)
		old := of[r]
		switch {
		case old == nil || old == g:
		case g == nil:
			g = old
		default:
			g.Sources = append(g.Sources, old.Sources...)
			for _, s := range old.Sources {
				for _, u := range s.Channels {
					of[p.class(u)] = g
				}
			}
			old.Sources = nil
		}
		if g == nil {
			g = &Group{}
		}
		of[r] = g
	}
	return g
}

// complete computes the other fields from g's sources; it returns false where there are no channels.
func (p *Plan) complete(g *Group) bool {
	used := map[Channel]bool{}
	for i, s := range g.Sources {
		count := map[Channel]int{}
		g.Sources[i].Channels = slices.Clone(s.Channels)
		for j, u := range s.Channels {
			r := p.class(u)
			g.Sources[i].Channels[j] = r
			count[r]++
			g.Each = max(g.Each, count[r])
			if !used[r] {
				used[r] = true
				g.Classes = append(g.Classes, r)
			}
			if g.Reason.None() {
				g.Reason = p.classes.reasons[r]
			}
		}
	}
	return len(g.Classes) > 0
}

// A Kept has for each axis of a constant the indices that are kept, nil where all are.
type Kept struct {
	Value  *ir.Value
	Before *ir.Tensor // the tensor before; the value may have another shape now
	Places [][]int64
	Pruned bool        // some index is not kept
	Reason pass.Reason // why all indices of some axis with channels are kept; may be none
}

// A removal is the removal of chosen classes.
type removal struct {
	*channelMap
	pruned map[Channel]bool // by class
}

// keptIndices are the indices of us that are kept.
func (r *removal) keptIndices(us []Channel) []int64 {
	places := make([]int64, 0, len(us))
	for i, u := range us {
		if !r.pruned[r.class(u)] {
			places = append(places, int64(i))
		}
	}
	return places
}

// onRemoval adds a change of nodes that is required if some of us are removed.
func (ch *channelMap) onRemoval(us []Channel, do func(*removal)) {
	ch.edits = append(ch.edits, func(r *removal) {
		if len(r.keptIndices(us)) < len(us) {
			do(r)
		}
	})
}

// Remove removes classes of channels from the graph: it changes attributes, shapes among the constants, and the types
// of values. It returns the indices to keep of each constant; the caller sets the payloads.
func (p *Plan) Remove(pruned map[Channel]bool) []Kept {
	r := &removal{p.channelMap, pruned}
	before := make([]*ir.Tensor, len(p.order))
	for i, s := range p.order {
		// Before the edits, one of which drops views and so changes the shape of a constant.
		before[i] = s.v.Const
	}
	for _, edit := range p.edits {
		edit(r)
	}
	for _, v := range p.keys {
		r.retype(v, p.axes[v])
	}
	kept := make([]Kept, len(p.order))
	for i, s := range p.order {
		kept[i] = r.constant(s)
		kept[i].Before = before[i]
	}
	return kept
}

// retype sets the new size of v's axis where the model states the old one.
func (r *removal) retype(v *ir.Value, a *axis) {
	n := int64(len(r.keptIndices(a.channels)))
	if n == int64(len(a.channels)) || v.Type == nil || len(v.Type.Shape)+a.at < 0 || v.Type.Shape == nil {
		return
	}
	dims := slices.Clone(v.Type.Shape)
	switch d := &dims[len(dims)+a.at]; {
	case !a.outer:
		*d = ir.Dim{N: n}
	case d.Known():
		*d = ir.Dim{N: d.N / int64(len(a.channels)) * n}
	default:
		*d = ir.Dim{N: -1}
	}
	v.Type = &ir.Type{Elem: v.Type.Elem, Shape: dims}
}

// constant is the indices of s that are kept.
func (r *removal) constant(s *constant) Kept {
	kept := Kept{Value: s.v, Places: make([][]int64, len(s.channels))}
	for i, us := range s.channels {
		places := r.keptIndices(us)
		if len(places) < len(us) {
			kept.Places[i], kept.Pruned = places, true
		} else if len(us) > 0 && kept.Reason.None() {
			kept.Reason = r.classes.reasons[r.class(us[0])]
		}
	}
	return kept
}

// String is the number of indices that are kept on each axis that loses some.
func (k Kept) String() string {
	s := ""
	for i, places := range k.Places {
		if places != nil {
			s += fmt.Sprintf(", %d of %d on axis %d", len(places), k.Value.Const.Shape[i], i)
		}
	}
	return s[2:] + " kept"
}
