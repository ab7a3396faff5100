package prune

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A layout is the use of each axis of a payload by the operator that reads it, in the order in which they are stored.
// Neighbours of one use are one axis.
type layout []axis

type axis struct {
	use use
	n   int64
}

type use uint8

const (
	batch   use = iota // independent products: leading axes, groups of a ConvTranspose
	out                // output channels
	reduce             // summed over
	spatial            // positions within a convolution's kernel
)

// A span is one axis and the number of elements around it.
type span struct{ outer, n, inner int64 }

// axisOf is the axis of the given use, of size 1 where there is none.
func (l layout) axisOf(u use) span {
	s := span{1, 1, 1}
	found := false
	for _, a := range l {
		switch {
		case a.use == u:
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
	if len(l) > 0 && l[0].use == batch {
		return l[0].n
	}
	return 1
}

// layoutOf is the layout of a weight for one of its consumers, or the reason why it is not known.
func layoutOf(u pass.Consumer) (layout, pass.Reason) {
	o := u.Operand
	if !o.Trouble.None() {
		return nil, o.Trouble
	}
	for _, name := range []string{"axis", "group", "transA", "transB"} {
		if a := u.Node.Attr(name); a != nil && a.Ref != "" {
			return nil, pass.FromCaller(u.Node)
		}
	}
	axes, ok := u.Axes()
	if !ok {
		return nil, shapeOf(u, fmt.Sprint(o.Shape))
	}
	uses := make([]use, len(o.Shape))
	for i := range uses {
		switch {
		case slices.Contains(axes.Batch, i):
			uses[i] = batch
		case slices.Contains(axes.Output, i):
			uses[i] = out
		case u.Input.Role == operator.Filter && i > 1:
			uses[i] = spatial
		default:
			uses[i] = reduce
		}
	}
	return payloadLayout(u, uses)
}

// payloadLayout is the layout of the payload of an operand whose axes have the given uses.
func payloadLayout(u pass.Consumer, uses []use) (layout, pass.Reason) {
	var l layout
	for i, n := range u.Operand.Shape {
		l = append(l, axis{uses[i], n})
	}
	if u.Operand.Transposed {
		slices.Reverse(l)
	}
	// ConvTranspose sums within a group
	if groups := u.Node.Int("group", 1); u.Input.Role == operator.Filter && uses[0] == reduce {
		if groups < 1 || l[0].n%groups != 0 {
			return nil, shapeOf(u, fmt.Sprintf("%v in %d groups", u.Operand.Shape, groups))
		}
		l = append(layout{{batch, groups}, {reduce, l[0].n / groups}}, l[1:]...)
	}
	return l.mergeAxes(), pass.Reason{}
}

// shapeOf is the reason of an operand whose shape the operator does not have.
func shapeOf(u pass.Consumer, shape string) pass.Reason {
	return pass.Reason{Code: pass.Unsupported, Detail: "shape " + shape}.At(u.Node)
}

// mergeAxes has one axis in place of neighbours of one use.
func (l layout) mergeAxes() layout {
	var m layout
	for _, a := range l {
		if last := len(m) - 1; last >= 0 && m[last].use == a.use {
			m[last].n *= a.n
			continue
		}
		m = append(m, a)
	}
	return m
}

func product(dims []int64) int64 { return ir.Spec{Shape: dims}.Elems() }
