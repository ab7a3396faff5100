package memplan

import (
	"slices"

	"github.com/mcompress/mcompress/internal/memory/layout"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A layoutRule is the effect of a change of layout on an operator. The zero value is an operator that uses the axes in
// the order in which they are stored.
type layoutRule struct {
	role layout.Role
	one  bool // only the first input is an image
}

// ruleOf is the rule of n's operator.
func ruleOf(n *ir.Node) layoutRule {
	f := operator.Of(n)
	switch {
	case f.Spatial:
		return layoutRule{role: layout.Sensitive, one: true}
	case f.LayoutAgnostic:
		return layoutRule{role: layout.Agnostic, one: f.Elementwise != operator.Broadcasts && !f.Variadic}
	}
	return layoutRule{}
}

// roleOf is the role of n, whose first input has the given rank.
func (h layoutRule) roleOf(n *ir.Node, rank int) layout.Role {
	if n.Op.Is("Transpose") {
		return move(n.Attr("perm"), rank)
	}
	if h.role != layout.Agnostic {
		return h.role
	}
	f := operator.Of(n)
	switch {
	// Flattening, and axes that are removed, depend on the order of the axes.
	case n.Graph().Opset("") < f.FlattensBefore, n.Int("keepdims", 1) == 0:
		return layout.Breaking
	// Axes in a constant can be renumbered, those that are computed at run time cannot.
	case h.one && f.Elementwise == operator.NotElementwise &&
		slices.ContainsFunc(axisInputs(n, f), func(v *ir.Value) bool { return v.Const == nil }):
		return layout.Breaking
	}
	return h.role
}

// axisInputs are the inputs of n after the first one that name axes, or have an element for each axis.
func axisInputs(n *ir.Node, f *operator.Facts) []*ir.Value {
	var list []*ir.Value
	for i, v := range n.Inputs() {
		_, scale := f.QuantizedBy(i)
		if i > 0 && v != nil && !scale && f.Input(i).Role != operator.Setting {
			list = append(list, v)
		}
	}
	return list
}

// move is the role of a Transpose. Of three axes, the permutation 0, 2, 1 is either direction; here it is to channels
// last.
func move(perm *ir.Attr, rank int) layout.Role {
	if perm == nil || rank < 3 || len(perm.Ints) != rank {
		return layout.Breaking
	}
	last, first := []int64{0}, []int64{0, int64(rank) - 1}
	for i := 2; i < rank; i++ {
		last, first = append(last, int64(i)), append(first, int64(i)-1)
	}
	last = append(last, 1)
	switch {
	case slices.Equal(perm.Ints, last):
		return layout.ToLast
	case slices.Equal(perm.Ints, first):
		return layout.ToFirst
	}
	return layout.Breaking
}
