package linear

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An operand is a stack of matrices in a tensor. Transposing it copies nothing.
type operand struct {
	rows, cols int
	row, col   int // strides, in elements
	batch      []int64
	strides    []int64 // of the leading axes
}

// operandOf is input X of n, which is A or B, as stacked matrices: its axes in the order of permX, with the first one
// moved before the last if transBatchX, and then the last two swapped if transX.
func operandOf(n *op.Node, name string, a *ir.Array) (operand, error) {
	shape, strides := slices.Clone(a.Shape), op.Strides(a.Shape)
	if perm := n.Ints("perm" + name); perm != nil {
		if !isPerm(perm, len(shape)) {
			return operand{}, fmt.Errorf("input %s %s: invalid permutation %v", name, a, perm)
		}
		for i, p := range perm {
			shape[i], strides[i] = a.Shape[p], op.Product(a.Shape[p+1:])
		}
	}
	switch len(shape) {
	case 0:
		return operand{}, fmt.Errorf("input %s is %s, want a vector or matrices", name, a)
	case 1:
		return vector(name, shape[0]), nil
	}
	last := len(shape) - 1
	if n.Bool("transBatch"+name, false) {
		rotateLeft(shape[:last])
		rotateLeft(strides[:last])
	}
	if n.Bool("trans"+name, false) {
		slices.Reverse(shape[last-1:])
		slices.Reverse(strides[last-1:])
	}
	return operand{int(shape[last-1]), int(shape[last]), int(strides[last-1]), int(strides[last]), shape[:last-1],
		strides[:last-1]}, nil
}

// vector is a tensor of rank 1: a row as left operand, a column as right one.
func vector(name string, n int64) operand {
	if name == "A" {
		return operand{rows: 1, cols: int(n), row: int(n), col: 1}
	}
	return operand{rows: int(n), cols: 1, row: 1, col: 1}
}

// rotateLeft moves the first element to the end.
func rotateLeft(x []int64) {
	head := x[0]
	copy(x, x[1:])
	x[len(x)-1] = head
}

func isPerm(perm []int64, rank int) bool {
	seen := make([]bool, rank)
	for _, p := range perm {
		if p < 0 || p >= int64(rank) || seen[p] {
			return false
		}
		seen[p] = true
	}
	return len(perm) == rank
}

// count is the number of matrices.
func (o operand) count() int64 { return op.Product(o.batch) }

// merge merges the stack into one matrix with all rows, if their strides allow.
func (o operand) merge() (operand, bool) {
	rows, row, ok := mergeInto(o.batch, o.strides, int64(o.rows), int64(o.row))
	return operand{rows: int(rows), cols: o.cols, row: int(row), col: o.col}, ok
}

// merge merges several axes into one, if a single stride covers all of them in order.
func merge(dims, strides []int64) (n, stride int64, ok bool) { return mergeInto(dims, strides, 1, 1) }

// mergeInto merges several axes and the axis after them, of last elements with stride step.
func mergeInto(dims, strides []int64, last, step int64) (n, stride int64, ok bool) {
	n, stride = last, step
	// The stride along an axis of one element is arbitrary.
	if n == 1 {
		stride = 1
	}
	for i := len(dims) - 1; i >= 0; i-- {
		switch {
		case dims[i] == 1:
		case n == 1:
			n, stride = dims[i], strides[i]
		// The next axis begins where the merged ones end: one stride covers both.
		case strides[i] == n*stride:
			n *= dims[i]
		default:
			return 0, 0, false
		}
	}
	return n, stride, true
}

// matrix is the one whose first element is at offset at.
func matrix[T any](o operand, data []T, at int) gemm.Matrix[T] {
	// With an empty axis the offset may be beyond the data, which no product reads then.
	return gemm.Matrix[T]{Data: data[min(at, len(data)):], Row: o.row, Col: o.col}
}

// places returns for each element of a broadcast shape its offset in a tensor with the axes own.
func places(shape, own, strides []int64) []int {
	out := make([]int, op.Product(shape))
	ahead := len(shape) - len(own)
	for i := range out {
		rest, at := int64(i), int64(0)
		for axis := len(shape) - 1; axis >= ahead; axis-- {
			if own[axis-ahead] > 1 {
				at += rest % shape[axis] * strides[axis-ahead]
			}
			rest /= shape[axis]
		}
		out[i] = int(at)
	}
	return out
}
