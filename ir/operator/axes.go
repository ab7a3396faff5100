package operator

import "github.com/mcompress/mcompress/ir"

// span is the axes from one up to, without it, another.
func span(from, to int) []int {
	var list []int
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// right is the second factor of a product: … × K × N, or … × N × K with transB. A vector is summed over.
func right(n *ir.Node, rank int) (Axes, bool) {
	return factor(rank, n.Int("transB", 0) != 0)
}

// left is the first factor: … × M × K, or … × K × M with transA.
func left(n *ir.Node, rank int) (Axes, bool) {
	return factor(rank, n.Int("transA", 0) == 0)
}

func factor(rank int, outputFirst bool) (Axes, bool) {
	switch {
	case rank < 1:
		return Axes{}, false
	case rank == 1:
		return Axes{Reduction: []int{0}}, true
	}
	a := Axes{Batch: span(0, rank-2), Output: []int{rank - 1}, Reduction: []int{rank - 2}}
	if outputFirst {
		a.Output, a.Reduction = a.Reduction, a.Output
	}
	return a, true
}

// filter is M × C/group × kernel.
func filter(_ *ir.Node, rank int) (Axes, bool) {
	return Axes{Output: []int{0}, Reduction: span(1, rank)}, rank >= 3
}

// transposedFilter is C × M/group × kernel: each of the groups sums over its own part of C.
func transposedFilter(n *ir.Node, rank int) (Axes, bool) {
	return Axes{Output: []int{1}, Reduction: append([]int{0}, span(2, rank)...), Shared: n.Int("group", 1)}, rank >= 3
}

// lastSummed is … × N × K: weights of the directions of a recurrent layer, or of experts.
func lastSummed(_ *ir.Node, rank int) (Axes, bool) {
	return Axes{Batch: []int{0}, Output: []int{1}, Reduction: []int{2}}, rank == 3
}

// blocks is MatMulNBits' N × blocks × bytes.
func blocks(_ *ir.Node, rank int) (Axes, bool) {
	return Axes{Output: []int{0}, Reduction: span(1, rank)}, rank >= 2
}

// table has a row for each index of the axis of a lookup.
func table(n *ir.Node, rank int) (Axes, bool) {
	axis := int(n.Int("axis", n.Int("gather_axis", 0)))
	if axis < 0 {
		axis += rank
	}
	return Axes{Output: []int{axis}, Reduction: append(span(0, axis), span(axis+1, rank)...)}, axis >= 0 && axis < rank
}
