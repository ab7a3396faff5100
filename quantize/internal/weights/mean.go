package weights

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// maxTraced is the maximum number of values that HasMean visits.
const maxTraced = 256

// InputsHaveMean reports whether the inputs that v is multiplied with have a common mean at all of its uses, as
// HasMean. Rows that are looked up, and states of recurrent layers, have none.
func InputsHaveMean(v *ir.Value) bool {
	uses := pass.LeafUses(v)
	for _, u := range uses {
		if u.Node == nil || !HasMean(input(u)) {
			return false
		}
	}
	return len(uses) > 0
}

// recurrence is the input of LSTM, GRU and RNN with the weights of the state.
const recurrence = 2

// input is the value that the weight at u is multiplied with, nil for tables and for the recurrence of an LSTM, GRU or
// RNN.
func input(u ir.Use) *ir.Value {
	switch role := operator.Of(u.Node).Input(u.Index).Role; {
	case role == operator.Table, role == operator.Gates && u.Index == recurrence:
		return nil
	case IsProduct(u.Node):
		return u.Node.Input(1 - u.Index)
	}
	return u.Node.Input(0)
}

// HasMean reports whether the elements of v have a common mean: v is a rectified value or an input of the model, or
// follows from such by operators that keep a mean. Outputs of normalizations, products, and sums of those do not: their
// means differ in sign from channel to channel.
func HasMean(v *ir.Value) bool {
	t := tracer{left: maxTraced}
	return t.mean(v)
}

// A tracer follows values to their producers, in a limited number of steps.
type tracer struct{ left int }

func (t *tracer) mean(v *ir.Value) bool {
	// The bound on steps also ends chains of sums of a value with itself, whose paths double with each of them.
	if t.left--; v == nil || v.Const != nil || t.left < 0 {
		return false
	}
	n := v.Producer()
	if n == nil {
		return v.IsInput()
	}
	switch f := operator.Of(n); {
	case f.Rectifies:
		return true
	case f.KeepsMean && !f.Variadic:
		return t.mean(n.Input(0))
	// A sum or product of values with means has one; a gate such as Swish has one whatever its argument, as it makes
	// negative values small.
	case f.KeepsMean, f.Affine != operator.NotAffine && (f.Commutative || n.Input(1).Const != nil):
		return t.all(n) || f.Affine == operator.Factor && t.gated(n)
	}
	return false
}

// all reports whether all inputs of n but constants have a mean.
func (t *tracer) all(n *ir.Node) bool {
	has := false
	for _, v := range n.Inputs() {
		if v == nil || v.Const != nil {
			continue
		}
		if has = t.mean(v); !has {
			return false
		}
	}
	return has
}

// gated reports whether n multiplies a value by a function of itself, as Gelu and Swish do.
func (t *tracer) gated(n *ir.Node) bool {
	a, b := n.Input(0), n.Input(1)
	return a != nil && b != nil && (a == b || t.function(a, b) || t.function(b, a))
}

// function reports whether v is computed from x alone, element by element.
func (t *tracer) function(v, x *ir.Value) bool {
	for v != x {
		if t.left--; t.left < 0 || v.Producer() == nil || operator.Of(v.Producer()).Elementwise == operator.NotElementwise {
			return false
		}
		var next *ir.Value
		for _, in := range v.Producer().Inputs() {
			switch {
			case in == nil || in.Const != nil:
			case in == x || next == nil:
				next = in
			}
		}
		if next == nil {
			return false
		}
		v = next
	}
	return true
}
