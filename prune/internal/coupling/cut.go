package coupling

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Group is the sources that make channels together, and the classes of those channels:
// what one of them loses the others lose too.
type Group struct {
	Sources []Source // their units are those in Classes
	Classes []Unit   // one unit for each class, in the order of the sources
	Each    int      // channels that a class stands for in the source with most of them
	Why     string   // why it stays whole, if it has to
}

// class is the unit that stands for u's class.
func (p *Plan) class(u Unit) Unit { return p.classes.root(u) }

// Keep makes the channels of those classes stay, for a reason that Kept repeats.
func (p *Plan) Keep(classes []Unit, why string) { p.classes.keep(classes, why) }

// Groups are the groups in the order of the graph.
func (p *Plan) Groups() []*Group {
	of := map[Unit]*Group{}
	var all []*Group
	for _, s := range p.sources {
		g := p.meeting(of, s)
		if len(g.Sources) == 0 {
			all = append(all, g)
		}
		g.Sources = append(g.Sources, s)
	}
	return slices.DeleteFunc(all, func(g *Group) bool { return len(g.Sources) == 0 || !p.complete(g) })
}

// meeting is the group that s belongs to, made one of all those that it meets.
func (p *Plan) meeting(of map[Unit]*Group, s Source) *Group {
	var g *Group
	for _, u := range s.Units {
		r := p.class(u)
		old := of[r]
		switch {
		case old == nil || old == g:
		case g == nil:
			g = old
		default:
			g.Sources = append(g.Sources, old.Sources...)
			for _, s := range old.Sources {
				for _, u := range s.Units {
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

// complete fills in what follows from g's sources.
func (p *Plan) complete(g *Group) bool {
	seen := map[Unit]bool{}
	for i, s := range g.Sources {
		count := map[Unit]int{}
		g.Sources[i].Units = slices.Clone(s.Units)
		for j, u := range s.Units {
			r := p.class(u)
			g.Sources[i].Units[j] = r
			count[r]++
			g.Each = max(g.Each, count[r])
			if !seen[r] {
				seen[r] = true
				g.Classes = append(g.Classes, r)
			}
			if g.Why == "" {
				g.Why = p.classes.why[r]
			}
		}
	}
	return len(g.Classes) > 0
}

// A Kept says what is left of a constant: for each axis the places that stay, nil where all
// of them do.
type Kept struct {
	Value  *ir.Value
	Before *ir.Tensor // what it was; its own payload may be seen in another shape now
	Places [][]int64
	Falls  bool   // some place does not stay
	Why    string // why all places of some axis with channels have to, if there is a reason
}

// A cutting is a choice of what falls.
type cutting struct {
	p     *Plan
	falls map[Unit]bool // by class
}

// left are the places of us that stay.
func (k *cutting) left(us []Unit) []int64 {
	places := make([]int64, 0, len(us))
	for i, u := range us {
		if !k.falls[k.p.class(u)] {
			places = append(places, int64(i))
		}
	}
	return places
}

// edit adds what has to be done to nodes if some of us fall.
func (p *Plan) edit(us []Unit, do func(*cutting)) {
	p.edits = append(p.edits, func(k *cutting) {
		if len(k.left(us)) < len(us) {
			do(k)
		}
	})
}

// Cut makes the graph one without the classes that fall: attributes, shapes among the
// constants, and the types of values. It returns what that leaves of each constant; the
// caller sets their payloads.
func (p *Plan) Cut(falls map[Unit]bool) []Kept {
	k := &cutting{p, falls}
	before := make([]*ir.Tensor, len(p.order))
	for i, s := range p.order {
		before[i] = s.v.Const
	}
	for _, edit := range p.edits {
		edit(k)
	}
	for _, v := range p.made {
		k.retype(v, p.axes[v])
	}
	kept := make([]Kept, len(p.order))
	for i, s := range p.order {
		kept[i] = k.constant(s)
		kept[i].Before = before[i]
	}
	return kept
}

// retype writes the new size of v's axis where the model states the old one.
func (k *cutting) retype(v *ir.Value, a *axis) {
	n := int64(len(k.left(a.units)))
	if n == int64(len(a.units)) || v.Type == nil || len(v.Type.Shape)+a.at < 0 || v.Type.Shape == nil {
		return
	}
	dims := slices.Clone(v.Type.Shape)
	dims[len(dims)+a.at] = ir.Dim{N: n}
	v.Type = &ir.Type{Elem: v.Type.Elem, Shape: dims}
}

func (k *cutting) constant(s *stored) Kept {
	kept := Kept{Value: s.v, Places: make([][]int64, len(s.units))}
	for i, us := range s.units {
		places := k.left(us)
		if len(places) < len(us) {
			kept.Places[i], kept.Falls = places, true
		} else if len(us) > 0 && kept.Why == "" {
			kept.Why = k.p.classes.why[k.p.class(us[0])]
		}
	}
	return kept
}

// String says how many of a constant's places stay on each axis that loses some.
func (k Kept) String() string {
	s := ""
	for i, places := range k.Places {
		if places != nil {
			s += fmt.Sprintf(", %d of %d on axis %d", len(places), k.Value.Const.Shape[i], i)
		}
	}
	return s[2:] + " stay"
}
