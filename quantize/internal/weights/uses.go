package weights

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A Use is one consumer of a weight and the axes of the weight with independent scales.
type Use struct {
	Consumer  *Consumer // of products and lookups; nil for other layers
	ScaleAxes []int     // of the constant as it is stored
}

// Uses are all uses of v, or the reason why one of them is not supported.
func Uses(v *ir.Value) ([]*Use, pass.Reason) {
	var us []*Use
	for _, l := range pass.LeafUses(v) {
		if l.Node == nil {
			return nil, pass.Reason{Code: pass.GraphOutput}
		}
		u := useOf(v, l)
		if u == nil {
			return nil, pass.UnsupportedInput(l.Node, l.Index)
		}
		us = append(us, u)
	}
	if len(us) == 0 {
		return nil, pass.Reason{Code: pass.Unused}
	}
	return us, pass.Reason{}
}

func useOf(v *ir.Value, l ir.Use) *Use {
	if s := ConsumerAt(l.Node, true); s != nil && s.Use.Index == l.Index {
		return &Use{Consumer: s, ScaleAxes: s.baseAxes(v)}
	}
	in, o := operator.Of(l.Node).Input(l.Index), pass.Trace(l.Node.Input(l.Index))
	// Products and lookups that are no Consumer have inputs or shapes that no form supports.
	if o == nil || !in.Role.IsWeight() || in.Quantized || IsProduct(l.Node) || l.Node.Op.Is("Gather") {
		return nil
	}
	axes, _ := in.Axes(l.Node, len(o.Shape))
	return &Use{ScaleAxes: axesOf(o, axes.Independent())}
}

// axesOf are the axes if the consumer sees the constant as it is stored; else it has one scale.
func axesOf(o *pass.Operand, axes []int) []int {
	if !o.Trouble.None() || o.Transposed || len(o.Shape) != len(o.Base.Const.Shape) {
		return nil
	}
	return axes
}

// baseAxes are the output axes of the constant, none if it is seen in another shape: rows of a table, and rows or
// columns of each matrix of a product.
func (s *Consumer) baseAxes(v *ir.Value) []int {
	rank := len(v.Const.Shape)
	if !s.Unsupported.None() || len(s.Shape) != rank || rank < 2 {
		return nil
	}
	if s.Side == Lookup {
		return []int{s.ChannelAxis()}
	}
	// Each matrix of a batch has scales of its own.
	axes := []int{}
	for i := range rank - 2 {
		axes = append(axes, i)
	}
	return append(axes, s.ChannelAxis())
}
