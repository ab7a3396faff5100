package coupling

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A constant has the channels on each axis of a constant, nil for an axis that keeps all elements.
type constant struct {
	v        *ir.Value
	channels [][]Channel // by axis of its consumer's operand, but for a transposition
}

// constants are the constants that nodes read channels of.
type constants struct {
	channels *channelMap
	step     *pass.Step
	unfit    func(*ir.Value) pass.Reason

	byValue   map[*ir.Value]*constant
	order     []*constant // in the order in which nodes read them
	sources   []Source
	consumers []Source
	used      map[ir.Use]bool // that a rule covers
	skipped   map[*ir.Value]bool
	list      []Skipped
}

// readConstant records the channels on the axes of n's constant input i, nil for axes without. The channels of several
// consumers of one constant are joined.
func (k *constants) readConstant(n *ir.Node, i int, channels ...[]Channel) {
	o := pass.Trace(n.Input(i))
	if reason := k.mismatch(o, channels); !reason.None() {
		if reason.Operator == "" {
			reason = reason.At(n)
		}
		for _, us := range channels {
			k.channels.classes.keep(us, reason)
		}
		k.skip(n, i, reason)
		return
	}
	if o.Transposed {
		channels = [][]Channel{channels[1], channels[0]}
	}
	k.markUse(n, i)
	s := k.byValue[o.Base]
	if s == nil {
		s = &constant{o.Base, slices.Clone(channels)}
		k.byValue[o.Base] = s
		k.order = append(k.order, s)
		if o.Reshaped {
			k.channels.onRemoval(slices.Concat(channels...), func(*removal) { k.foldViews(n, i, o) })
		}
		return
	}
	for axis := range channels {
		k.unify(n, s, axis, channels[axis])
	}
}

// mismatch is the reason why the axes of o are not those of the constant.
func (k *constants) mismatch(o *pass.Operand, channels [][]Channel) pass.Reason {
	switch {
	case o == nil:
		return pass.Reason{Code: pass.ChannelsConstant, Detail: "no constant operand"}
	case !o.Trouble.None():
		return o.Trouble
	case o.Base.Const.DType.Bits() < 8:
		return pass.Reason{Code: pass.ChannelsConstant, Detail: fmt.Sprintf("data type %s", o.Base.Const.DType)}
	case len(channels) != len(o.Shape):
		return pass.Reason{Code: pass.ChannelsConstant, Detail: fmt.Sprintf("rank %d of %s", len(o.Shape), o.Base.Name)}
	}
	if reason := k.unfit(o.Base); !reason.None() {
		return reason
	}
	if o.Reshaped && (o.Transposed || o.Elem != o.Base.Const.DType || len(pass.LeafUses(o.Base)) > 1) {
		return pass.Reason{Code: pass.ChannelsConstant, Detail: "other shape of " + o.Base.Name}
	}
	for axis, us := range channels {
		if us != nil && int64(len(us)) != o.Shape[axis] {
			return pass.Reason{Code: pass.ChannelsConstant,
				Detail: fmt.Sprintf("shape %v of %s", o.Base.Const.Shape, o.Base.Name)}
		}
	}
	return pass.Reason{}
}

// before is the shape in which o's constant is used, but for a transposition.
func before(o *pass.Operand) []int64 {
	shape := slices.Clone(o.Shape)
	if o.Transposed {
		slices.Reverse(shape)
	}
	return shape
}

// foldViews makes n read its constant in the shape of the views between them, and drops those, whose sizes are
// those before. There is no other consumer.
func (k *constants) foldViews(n *ir.Node, i int, o *pass.Operand) {
	old, t := n.Input(i), *o.Base.Const
	t.Shape = o.Shape
	n.SetInput(i, o.Base)
	o.Base.SetConst(&t)
	old.Drop()
}

// skip records why n's use of input i is not supported, if that is a constant.
func (k *constants) skip(n *ir.Node, i int, reason pass.Reason) {
	o := pass.Trace(n.Input(i))
	if o == nil || !pass.IsWeight(o.Base.Const) || k.skipped[o.Base] {
		return
	}
	k.skipped[o.Base] = true
	k.list = append(k.list, Skipped{o.Base, reason})
}

// markUse records that a rule covers n's use of its constant input i.
func (k *constants) markUse(n *ir.Node, i int) { k.used[ir.Use{Node: n, Index: i}] = true }

// unify joins the channels us on an axis of s with those of earlier consumers.
func (k *constants) unify(n *ir.Node, s *constant, axis int, us []Channel) {
	old := s.channels[axis]
	switch {
	case old != nil && us != nil:
		k.channels.classes.joinAll(old, us)
	// One consumer reads channels on an axis of which another one reads all elements.
	case old != nil || us != nil:
		k.channels.keep(n, append(slices.Clone(old), us...), pass.Reason{Code: pass.ChannelsShared, Detail: s.v.Name})
	}
	if old == nil {
		s.channels[axis] = us
	}
}

// keep keeps all channels of s because of a use that no rule covers.
func (s *constant) keep(ch *channelMap, u ir.Use) {
	for _, us := range s.channels {
		if u.Node == nil {
			ch.classes.keep(us, pass.Reason{Code: pass.ChannelsOutput, Detail: s.v.Name})
			continue
		}
		ch.keep(u.Node, us, pass.Reason{Code: pass.ChannelsShared, Detail: s.v.Name})
	}
}

// vector reads n's optional input i as one element per channel.
func (k *constants) vector(n *ir.Node, i int, us []Channel) {
	if n.Input(i) != nil {
		k.readConstant(n, i, us)
	}
}

// none is the axis of the outputs of a product whose outputs are not followed.
const none = -1

// product records that n's input i, whose channels were read, makes the channels on one axis of the operand and reads
// those on the others.
func (k *constants) product(n *ir.Node, i int, channels [][]Channel, out int) {
	o := pass.Trace(n.Input(i))
	if o == nil || !o.Trouble.None() || k.byValue[o.Base] == nil {
		return
	}
	for axis, us := range channels {
		s := Source{o.Base, n, before(o), axis, us}
		if o.Transposed {
			s.Axis = 1 - axis
		}
		switch {
		case axis == out:
			k.sources = append(k.sources, s)
		case us != nil:
			k.consumers = append(k.consumers, s)
		}
	}
}
