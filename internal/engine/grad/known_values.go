package grad

import (
	numbers "github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// knownInts returns the elements of a value that follows from constants and shapes, such as axes; false if it does not.
func (t *Tape) knownInts(v *ir.Value) ([]int64, bool) {
	a := t.known[v]
	if a == nil {
		return nil, false
	}
	is, err := op.Ints(a)
	return is, err == nil
}

// knownScalar returns the only element of a known value.
func (t *Tape) knownScalar(v *ir.Value) (float64, bool) {
	a := t.known[v]
	if a == nil || a.Elems() != 1 || numbers.Check(a.DType) != nil {
		return 0, false
	}
	x := make([]float64, 1)
	numbers.Read(x, a, 0)
	return x[0], true
}

// knownList returns a list that is an attribute in older opsets and input i in newer ones. It reports whether the list is given, and
// whether its elements are known.
func (t *Tape) knownList(n *ir.Node, name string, i int) (is []int64, given, known bool) {
	if a := n.Attr(name); a != nil {
		return a.Ints, true, true
	}
	if n.Input(i) == nil {
		return nil, false, true
	}
	is, known = t.knownInts(n.Input(i))
	return is, true, known
}
