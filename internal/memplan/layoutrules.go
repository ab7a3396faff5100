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
	role   layout.Role
	since  int64 // first opset of the rule
	one    bool  // only the first input is an image
	consts bool  // the other inputs name axes, or have an element for each axis: they have to be constant
	keeps  bool  // the reduced axes have to be kept
}

// named are the operators along an axis that an attribute or a constant names. They compute the same in either layout.
var byAxis = map[string]layoutRule{
	"AffineGrid": {role: layout.Sensitive, one: true},
	"ArgMax":     {role: layout.Agnostic, one: true, consts: true, keeps: true},
	"ArgMin":     {role: layout.Agnostic, one: true, consts: true, keeps: true},
	"Concat":     {role: layout.Agnostic},
	"Hardmax":    {role: layout.Agnostic, since: 13},
	"LogSoftmax": {role: layout.Agnostic, since: 13},
	"Pad":        {role: layout.Agnostic, one: true, consts: true},
	"Slice":      {role: layout.Agnostic, one: true, consts: true},
	"Softmax":    {role: layout.Agnostic, since: 13},
	"Split":      {role: layout.Agnostic, one: true, consts: true},
	"Tile":       {role: layout.Agnostic, one: true, consts: true},

	"DequantizeLinear":      {role: layout.Agnostic, one: true},
	"DynamicQuantizeLinear": {role: layout.Agnostic, one: true},
	"QuantizeLinear":        {role: layout.Agnostic, one: true},
}

// ruleOf is the rule of n's operator, of ONNX's own domain or of com.microsoft.
func ruleOf(n *ir.Node) layoutRule {
	f := operator.Of(n)
	switch {
	case f.Spatial:
		return layoutRule{role: layout.Sensitive, one: true}
	case f.Reduction:
		return layoutRule{role: layout.Agnostic, one: true, consts: true, keeps: true}
	case f.Elementwise == operator.Unary:
		return layoutRule{role: layout.Agnostic, one: true}
	case f.Elementwise == operator.Broadcasts:
		return layoutRule{role: layout.Agnostic}
	case ir.DefaultDomain(n.Op.Domain):
		return byAxis[n.Op.Type]
	}
	return layoutRule{}
}

// of is the role of n, whose first input has the given rank.
func (h layoutRule) of(n *ir.Node, rank int) layout.Role {
	if n.Op.Is("Transpose") {
		return move(n.Attr("perm"), rank)
	}
	switch {
	case n.Graph().Opset("") < h.since:
		return layout.Breaking
	case h.keeps && n.Int("keepdims", 1) == 0:
		return layout.Breaking
	case h.consts && slices.ContainsFunc(n.Inputs()[1:], func(v *ir.Value) bool { return v != nil && v.Const == nil }):
		return layout.Breaking
	}
	return h.role
}

// move is the role of a Transpose. Of three axes, the permutation 0, 2, 1 is either direction; here it is to channels last.
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
