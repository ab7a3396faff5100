package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A stack is an operand's matrices in place: permuted axes and their strides.
type stack struct{ shape, strides []int64 }

func stackOf(n *op.Node, name string, a *ir.Array) (stack, error) {
	s, rank := stack{a.Shape, op.Strides(a.Shape)}, len(a.Shape)
	perm := n.Ints("perm" + name)
	if rank < 2 {
		return s, fmt.Errorf("input %s is %s, not matrices", name, a)
	}
	if perm == nil {
		return s, nil
	}
	if !isOrder(perm, rank) {
		return s, fmt.Errorf("input %s %s: its axes cannot be permuted by %v", name, a, perm)
	}
	return stack{inOrder(s.shape, perm), inOrder(s.strides, perm)}, nil
}

// isOrder reports whether perm is a permutation of axes that keeps the last one.
func isOrder(perm []int64, rank int) bool {
	sorted := slices.Sorted(slices.Values(perm))
	for i, p := range sorted {
		if p != int64(i) {
			return false
		}
	}
	return len(perm) == rank && perm[rank-1] == int64(rank-1)
}

func inOrder(x, perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, p := range perm {
		out[i] = x[p]
	}
	return out
}

func (s stack) rows() int { return int(s.shape[len(s.shape)-2]) }

func (s stack) cols() int { return int(s.shape[len(s.shape)-1]) }

func (s stack) lead() []int64 { return s.shape[:len(s.shape)-2] }

// row returns the stride of rows.
func (s stack) row() int { return int(s.strides[len(s.shape)-2]) }

// offset returns the offset of matrix i of the stack.
func (s stack) offset(i int) int {
	at := 0
	for axis := len(s.shape) - 3; axis >= 0; axis-- {
		at += i % int(s.shape[axis]) * int(s.strides[axis])
		i /= int(s.shape[axis])
	}
	return at
}

// shares reports whether the leading axes are these, except that the last one may be 1.
func (s stack) shares(lead []int64) bool {
	own := s.lead()
	if len(own) != len(lead) || len(own) == 0 {
		return len(own) == len(lead)
	}
	last := len(lead) - 1
	return slices.Equal(own[:last], lead[:last]) && (own[last] == lead[last] || own[last] == 1)
}

// spread repeats the last of the leading axes to that of lead, and returns the number of repetitions.
func (s *stack) spread(lead []int64) int {
	last := len(lead) - 1
	if last < 0 || s.shape[last] == lead[last] {
		return 1
	}
	s.shape, s.strides = slices.Clone(s.shape), slices.Clone(s.strides)
	s.shape[last], s.strides[last] = lead[last], 0
	return int(lead[last])
}
