package grad

import (
	numbers "github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Ints of a value that follows from constants and shapes, such as axes; false if it does not.
func (t *Tape) integers(v *ir.Value) ([]int64, bool) {
	a := t.known[v]
	if a == nil {
		return nil, false
	}
	is, err := op.Ints(a)
	return is, err == nil
}

// number is the one element of a value that is known, false if there is none.
func (t *Tape) number(v *ir.Value) (float64, bool) {
	a := t.known[v]
	if a == nil || a.Elems() != 1 || numbers.Check(a.DType) != nil {
		return 0, false
	}
	x := make([]float64, 1)
	numbers.Read(x, a, 0)
	return x[0], true
}

// list is what an operator has as an attribute in older opsets and as input i in newer ones. It reports whether it is
// there, and whether its elements are known.
func (t *Tape) list(n *ir.Node, name string, i int) (is []int64, given, known bool) {
	if a := n.Attr(name); a != nil {
		return a.Ints, true, true
	}
	if n.Input(i) == nil {
		return nil, false, true
	}
	is, known = t.integers(n.Input(i))
	return is, true, known
}
