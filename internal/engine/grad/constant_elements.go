package grad

import (
	numbers "github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// constantElements are small values that follow from constants and shapes, such as axes, with their elements.
type constantElements map[*ir.Value]*ir.Array

// ints returns the elements of v; false if they depend on the inputs.
func (e constantElements) ints(v *ir.Value) ([]int64, bool) {
	a := e[v]
	if a == nil {
		return nil, false
	}
	is, err := op.Ints(a)
	return is, err == nil
}

// scalar returns the only element of v; false if v has several or depends on the inputs.
func (e constantElements) scalar(v *ir.Value) (float64, bool) {
	a := e[v]
	if a == nil || a.Elems() != 1 || numbers.Check(a.DType) != nil {
		return 0, false
	}
	x := make([]float64, 1)
	numbers.Read(x, a, 0)
	return x[0], true
}

// list returns a list that is an attribute in older opsets and input i in newer ones. It reports whether the list is
// given, and whether its elements are known.
func (e constantElements) list(n *ir.Node, name string, i int) (is []int64, given, known bool) {
	if a := n.Attr(name); a != nil {
		return a.Ints, true, true
	}
	if n.Input(i) == nil {
		return nil, false, true
	}
	is, known = e.ints(n.Input(i))
	return is, true, known
}
