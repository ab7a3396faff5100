package coupling

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A stored is a constant and the channels on each of its axes, nil for an axis that stays
// whole.
type stored struct {
	v     *ir.Value
	units [][]Unit // by axis as its reader sees it, but for a transposition
}

// read says what the axes of n's constant input i mean to n: channels, or nil. Readers of
// one constant have to agree, so their channels are joined.
func (p *Plan) read(n *ir.Node, i int, units ...[]Unit) {
	o := p.c.Trace(n.Input(i))
	if why := p.unreadable(o, units); why != "" {
		for _, us := range units {
			p.keep(n, us, why)
		}
		p.refuse(n, i, fmt.Sprintf("%s %s %s", n.Op, n.Label(), why))
		return
	}
	if o.Transposed {
		units[0], units[1] = units[1], units[0]
	}
	p.see(n, i)
	s := p.stored[o.Base]
	if s == nil {
		s = &stored{o.Base, slices.Clone(units)}
		p.stored[o.Base] = s
		p.order = append(p.order, s)
		if !slices.Equal(before(o), o.Base.Const.Shape) {
			p.edit(slices.Concat(units...), func(*cutting) { p.fold(n, i, o) })
		}
		return
	}
	for k := range units {
		p.agree(n, s, k, units[k])
	}
}

// unreadable gives the reason why the axes of o are not those of the constant, or "".
func (p *Plan) unreadable(o *pass.Operand, units [][]Unit) string {
	switch {
	case o == nil:
		return "reads no constant beside them"
	case o.Trouble != "":
		return "reads a constant of which " + o.Trouble
	case o.Base.Const.DType.Bits() < 8:
		return fmt.Sprintf("reads a constant of type %s", o.Base.Const.DType)
	case len(units) != len(o.Shape):
		return fmt.Sprintf("reads a constant of rank %d", len(o.Shape))
	case overridable(o.Base):
		return fmt.Sprintf("reads %q, an input that callers may replace", o.Base.Name)
	}
	if why := p.unfit(o.Base); why != "" {
		return fmt.Sprintf("reads %q: %s", o.Base.Name, why)
	}
	if !slices.Equal(before(o), o.Base.Const.Shape) && (o.Transposed || o.Elem != o.Base.Const.DType || len(pass.Leaves(o.Base)) > 1) {
		return fmt.Sprintf("reads %q in another shape", o.Base.Name)
	}
	for k, us := range units {
		if us != nil && int64(len(us)) != o.Shape[k] {
			return fmt.Sprintf("reads %q of shape %v", o.Base.Name, o.Base.Const.Shape)
		}
	}
	return ""
}

// before is the shape in which o's constant is seen, but for a transposition.
func before(o *pass.Operand) []int64 {
	shape := slices.Clone(o.Shape)
	if o.Transposed {
		slices.Reverse(shape)
	}
	return shape
}

// fold makes n read its constant in the shape that Reshape and the like give it, without
// them. There is no other reader.
func (p *Plan) fold(n *ir.Node, i int, o *pass.Operand) {
	old, t := n.Input(i), *o.Base.Const
	t.Shape = o.Shape
	n.SetInput(i, o.Base)
	o.Base.SetConst(&t)
	old.Drop()
}

// refuse notes why n does not say what its constant input i means, if it is one.
func (p *Plan) refuse(n *ir.Node, i int, why string) {
	o := p.c.Trace(n.Input(i))
	if o == nil || !pass.IsWeight(o.Base.Const) || p.refused[o.Base] {
		return
	}
	p.refused[o.Base] = true
	p.Refused = append(p.Refused, Refusal{o.Base, why})
}

// listedInputs is the IR version up to which every initializer is a graph input and none
// of them is meant to be replaced.
const listedInputs = 3

func overridable(v *ir.Value) bool {
	g := v.Graph()
	return v.IsInput() && (g.Model().IRVersion > listedInputs || g != g.Model().Graph)
}

// see notes the use by which n's input i reads its constant, behind the nodes that Trace
// looks through.
func (p *Plan) see(n *ir.Node, i int) { p.seen[ir.Use{Node: n, Index: i}] = true }

func (p *Plan) agree(n *ir.Node, s *stored, k int, us []Unit) {
	old := s.units[k]
	switch {
	case old != nil && us != nil:
		p.classes.joinAll(old, us)
	case old != nil || us != nil:
		p.keep(n, append(slices.Clone(old), us...), fmt.Sprintf("reads %q, shared with another node, in another way", s.v.Name))
	}
	if old == nil {
		s.units[k] = us
	}
}

// keep keeps all channels of s because of a use that no rule spoke of.
func (s *stored) keep(p *Plan, u ir.Use) {
	for _, us := range s.units {
		if u.Node == nil {
			p.classes.keep(us, fmt.Sprintf("%q is a graph output", s.v.Name))
			continue
		}
		p.classes.keep(us, fmt.Sprintf("%q is also read by %s %s", s.v.Name, u.Node.Op, u.Node.Label()))
	}
}

// vector reads n's input i, if it is there, as one number for each channel.
func (p *Plan) vector(n *ir.Node, i int, us []Unit) {
	if n.Input(i) != nil {
		p.read(n, i, us)
	}
}

// source adds n's input i as a maker of channels, which stand on that axis of what n sees.
func (p *Plan) source(n *ir.Node, i, axis int, us []Unit) {
	o := p.c.Trace(n.Input(i))
	if o == nil || o.Trouble != "" || p.stored[o.Base] == nil {
		return
	}
	if o.Transposed {
		axis = 1 - axis
	}
	p.sources = append(p.sources, Source{o.Base, n, before(o), axis, us})
}
