package rescale

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An axis maps each element of a weight to its channel: element i to
// of((i / inner) % n).
type axis struct {
	n, inner int64
	of       func(int64) int64 // nil: the index itself
}

// channel is the channel of element i.
func (a axis) channel(i int64) int64 {
	j := i / a.inner % a.n
	if a.of == nil {
		return j
	}
	return a.of(j)
}

// spread expands one factor per channel to one per index of the axis.
func (a axis) spread(f []float64) []float32 {
	to := make([]float32, a.n)
	for i := range to {
		to[i] = float32(f[a.channel(int64(i)*a.inner)])
	}
	return to
}

// A layout is the position of the channels in a layer's weight.
type layout struct {
	in, out         axis
	inputs, outputs int64 // channels
}

// layouts are the supported layer operators.
var layouts = map[string]func(n *ir.Node, o *pass.Operand) (layout, pass.Reason){
	"Conv":          conv,
	"ConvTranspose": convTranspose,
	"Gemm": func(n *ir.Node, o *pass.Operand) (layout, pass.Reason) {
		return matrix(n, o, n.Int("transB", 0) != 0)
	},
	"MatMul": func(n *ir.Node, o *pass.Operand) (layout, pass.Reason) { return matrix(n, o, false) },
}

// conv is M × C/group × kernel.
func conv(n *ir.Node, o *pass.Operand) (layout, pass.Reason) {
	m, each, kernel, group, reason := filters(n, o)
	l := layout{inputs: each * group, outputs: m, out: axis{n: m, inner: each * kernel}, in: axis{n: each, inner: kernel}}
	if reason.None() && m%group != 0 {
		return layout{}, shape(n, fmt.Sprintf("%d filters in %d groups", m, group))
	}
	if group > 1 {
		// Index i is a filter and one of its inputs: filters of group i/each/(m/group) read the channels of that group,
		// which come after those of the groups before.
		l.in = axis{m * each, kernel, func(i int64) int64 { return i/each/(m/group)*each + i%each }}
	}
	return l, reason
}

// convTranspose is C × M/group × kernel.
func convTranspose(n *ir.Node, o *pass.Operand) (layout, pass.Reason) {
	c, each, kernel, group, reason := filters(n, o)
	l := layout{inputs: c, outputs: each * group, in: axis{n: c, inner: each * kernel}, out: axis{n: each, inner: kernel}}
	if reason.None() && c%group != 0 {
		return layout{}, shape(n, fmt.Sprintf("%d channels in %d groups", c, group))
	}
	if group > 1 {
		// As for Conv with inputs and outputs exchanged.
		l.out = axis{c * each, kernel, func(i int64) int64 { return i/each/(c/group)*each + i%each }}
	}
	return l, reason
}

func filters(n *ir.Node, o *pass.Operand) (first, each, kernel, group int64, reason pass.Reason) {
	group = n.Int("group", 1)
	if len(o.Shape) < 3 || o.Transposed || group < 1 || (ir.Spec{Shape: o.Shape}).Elems() == 0 {
		return 1, 1, 1, 1, shape(n, fmt.Sprintf("filter of shape %v in %d groups", o.Shape, group))
	}
	return o.Shape[0], o.Shape[1], (ir.Spec{Shape: o.Shape[2:]}).Elems(), group, pass.Reason{}
}

// matrix is K × N, or N × K if transposed.
func matrix(n *ir.Node, o *pass.Operand, transposed bool) (layout, pass.Reason) {
	if len(o.Shape) != 2 || o.Shape[0] == 0 || o.Shape[1] == 0 {
		return layout{}, shape(n, fmt.Sprintf("shape %v of a matrix", o.Shape))
	}
	rows, cols := o.Shape[0], o.Shape[1]
	if transposed {
		rows, cols = cols, rows
	}
	l := layout{inputs: rows, outputs: cols, in: axis{n: rows, inner: cols}, out: axis{n: cols, inner: 1}}
	// Two transpositions, the attribute and a node, cancel each other in the order of the stored elements.
	if transposed != o.Transposed {
		l.in, l.out = axis{n: rows, inner: 1}, axis{n: cols, inner: rows}
	}
	return l, pass.Reason{}
}

// shape is the reason of a weight of n whose shape the operator does not have.
func shape(n *ir.Node, detail string) pass.Reason { return reasonAt(n, pass.Unsupported, detail) }
