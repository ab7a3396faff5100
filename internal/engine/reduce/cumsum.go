package reduce

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func cumulateOps() []op.Op {
	ops := []op.Op{{Type: "CumSum", Since: 11}, {Type: "CumProd", Since: 26}}
	for i := range ops {
		ops[i].Shape, ops[i].Run, ops[i].Work, ops[i].InPlace = cumulateShape, runCumulate, cumulateWork, []int{0}
	}
	return ops
}

func cumulateShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := sums.Tensor(in, 0, "x")
	if err != nil {
		return nil, err
	}
	if _, err := block.Of(ir.Int32, ir.Int64).Tensor(in, 1, "axis"); err != nil {
		return nil, err
	}
	if _, err := cumulateAxis(in); err != nil && !errors.Is(err, op.ErrUnknown) {
		return nil, err
	}
	return []ir.Spec{x.Spec()}, nil
}

func cumulateAxis(in []*ir.Array) (int, error) {
	if in[1].Elems() != 1 {
		return 0, fmt.Errorf("input axis is %s, want a scalar", in[1])
	}
	axes, err := op.Ints(in[1])
	if err != nil {
		return 0, err
	}
	return op.Axis(axes[0], len(in[0].Shape))
}

// cumulateWork is enough for any axis while it is unknown.
func cumulateWork(_ *op.Node, in []*ir.Array, workers int) int64 {
	x, most := in[0], int64(0)
	axis, err := cumulateAxis(in)
	for i := range x.Shape {
		if err != nil || i == axis {
			most = max(most, lanesOf(x, i).bytes(x.DType))
		}
	}
	return int64(workers) * most
}

func runCumulate(c *op.Call) error {
	axis, err := cumulateAxis(c.In)
	if err != nil {
		return err
	}
	l := lanesOf(c.In[0], axis)
	switch dt := c.In[0].DType; {
	case (block.Float | block.Halves).Has(dt):
		return along(c, l, 2, cumulation[float32, float64](c.Node))
	case dt == ir.Double:
		return along(c, l, 2, cumulation[float64, float64](c.Node))
	case block.Signed.Has(dt):
		return along(c, l, 2, cumulation[int64, int64](c.Node))
	case block.Unsigned.Has(dt):
		return along(c, l, 2, cumulation[uint64, uint64](c.Node))
	default:
		return unexpected(c, dt)
	}
}

// cumulation is the cumulative sum, or product, computed in type A.
func cumulation[T, A numeric](n *op.Node) func(dst, x []T) {
	exclusive, reverse := n.Bool("exclusive", false), n.Bool("reverse", false)
	pass := running[T, A]
	if n.ID.Type == "CumProd" {
		pass = runningProduct[T, A]
	}
	return func(dst, x []T) {
		copy(dst, x)
		// A reverse sum is that of the reversed lane: one loop for both, and a copy in the cache is cheap.
		if reverse {
			slices.Reverse(dst)
		}
		pass(dst, exclusive)
		if reverse {
			slices.Reverse(dst)
		}
	}
}

func running[T, A numeric](x []T, exclusive bool) {
	acc := A(0)
	for i, v := range x {
		before := acc
		acc += A(v)
		x[i] = T(acc)
		if exclusive {
			x[i] = T(before)
		}
	}
}

func runningProduct[T, A numeric](x []T, exclusive bool) {
	acc := A(1)
	for i, v := range x {
		before := acc
		acc *= A(v)
		x[i] = T(acc)
		if exclusive {
			x[i] = T(before)
		}
	}
}
