package movement

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func transposes() []op.Op {
	return []op.Op{{Type: "Transpose", Since: 1, Shape: transposeShape, Run: runTranspose}}
}

func transposeShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "data")
	if err != nil {
		return nil, err
	}
	perm, err := permutation(n, len(a.Shape))
	if err != nil {
		return nil, err
	}
	return op.One(a.DType, permuted(a.Shape, perm)...)
}

// permutation is the input axis of each output axis; without perm the axes are reversed.
func permutation(n *op.Node, rank int) ([]int64, error) {
	if !n.Has("perm") {
		perm := make([]int64, rank)
		for i := range perm {
			perm[i] = int64(rank - 1 - i)
		}
		return perm, nil
	}
	perm := n.Ints("perm")
	if len(perm) != rank {
		return nil, fmt.Errorf("perm %v for a tensor of rank %d", perm, rank)
	}
	seen := make([]bool, rank)
	for _, p := range perm {
		if p < 0 || p >= int64(rank) || seen[p] {
			return nil, fmt.Errorf("perm %v is not a permutation of the axes", perm)
		}
		seen[p] = true
	}
	return perm, nil
}

func permuted(xs, perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, p := range perm {
		out[i] = xs[p]
	}
	return out
}

func runTranspose(c *op.Call) error {
	src, dst := c.In[0], c.Out[0]
	perm, err := permutation(c.Node, len(src.Shape))
	if err != nil {
		return err
	}
	move(c.Pool, newStrided(dst.Shape, op.Strides(dst.Shape), permuted(op.Strides(src.Shape), perm)), dst, src)
	return nil
}
