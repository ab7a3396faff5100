package prune

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A layout says what the axes of a payload mean to the operator that reads it, in the order
// in which they are stored. Neighbours of one meaning are one axis.
type layout []axis

type axis struct {
	means meaning
	n     int64
}

type meaning uint8

const (
	batch  meaning = iota // independent products: leading axes, groups of a ConvTranspose
	out                   // output channels
	reduce                // what products sum over
	tail                  // positions inside a convolution's kernel
)

// A span is one axis and the number of elements around it.
type span struct{ outer, n, inner int64 }

// along is the axis of the given meaning, of size 1 where there is none.
func (l layout) along(m meaning) span {
	s := span{1, 1, 1}
	found := false
	for _, a := range l {
		switch {
		case a.means == m:
			s.n, found = a.n, true
		case found:
			s.inner *= a.n
		default:
			s.outer *= a.n
		}
	}
	return s
}

// batches is the size of the leading batch axis.
func (l layout) batches() int64 {
	if len(l) > 0 && l[0].means == batch {
		return l[0].n
	}
	return 1
}

// matrix is the layout of an operand whose last two axes are rows and columns.
func matrix(o *pass.Operand, rows, cols meaning) (layout, string) {
	r := len(o.Shape)
	if r == 0 {
		return nil, "it is a scalar"
	}
	if r == 1 { // a vector in a product is summed over, on either side
		return layout{{reduce, o.Shape[0]}}, ""
	}
	a, b := axis{rows, o.Shape[r-2]}, axis{cols, o.Shape[r-1]}
	if o.Transposed {
		a, b = b, a
	}
	return layout{{batch, product(o.Shape[:r-2])}, a, b}, ""
}

func left(n *ir.Node, o *pass.Operand) (layout, string) {
	return operand(n, o, "transA", out, reduce)
}

func right(n *ir.Node, o *pass.Operand) (layout, string) {
	return operand(n, o, "transB", reduce, out)
}

// operand is a side of MatMul, which has no attribute trans, or of Gemm.
func operand(n *ir.Node, o *pass.Operand, trans string, rows, cols meaning) (layout, string) {
	t, why := attr(n, trans, 0)
	if why != "" {
		return nil, why
	}
	if t != 0 {
		rows, cols = cols, rows
	}
	return matrix(o, rows, cols)
}

// conv is M × C/group × kernel.
func conv(_ *ir.Node, o *pass.Operand) (layout, string) {
	if len(o.Shape) < 3 {
		return nil, fmt.Sprintf("a filter of rank %d is none", len(o.Shape))
	}
	return layout{{out, o.Shape[0]}, {reduce, o.Shape[1]}, {tail, product(o.Shape[2:])}}, ""
}

// convTranspose is C × M/group × kernel; each group sums over its own part of C.
func convTranspose(n *ir.Node, o *pass.Operand) (layout, string) {
	groups, why := attr(n, "group", 1)
	if why != "" {
		return nil, why
	}
	if len(o.Shape) < 3 || groups < 1 || o.Shape[0]%groups != 0 {
		return nil, fmt.Sprintf("a filter of shape %v in %d groups is none", o.Shape, groups)
	}
	return layout{{batch, groups}, {reduce, o.Shape[0] / groups}, {out, o.Shape[1]}, {tail, product(o.Shape[2:])}}, ""
}

// rows is ... × n: every row belongs to one gate of one unit (LSTM, GRU, RNN) or is one
// entry of a lookup table (Gather).
func rows(_ *ir.Node, o *pass.Operand) (layout, string) {
	r := len(o.Shape)
	if r < 2 {
		return nil, fmt.Sprintf("it has rank %d, not rows", r)
	}
	if o.Transposed {
		return layout{{reduce, o.Shape[1]}, {out, o.Shape[0]}}, ""
	}
	return layout{{out, product(o.Shape[:r-1])}, {reduce, o.Shape[r-1]}}, ""
}

// attr is an integer attribute; one that stands for a function's attribute is not known.
func attr(n *ir.Node, name string, def int64) (value int64, why string) {
	if a := n.Attr(name); a != nil && a.Ref != "" {
		return 0, fmt.Sprintf("the caller of its function sets %s of %s", name, n.Label())
	}
	return n.Int(name, def), ""
}

func product(dims []int64) int64 { return ir.Spec{Shape: dims}.Elems() }
