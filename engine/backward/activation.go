package backward

import (
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// activations are gradients of operators that work element by element:
//
//	dX = Grad(Y, dY)
//
// of the output where the derivative follows from it, of the input where it does not.
func activations() []op.Op {
	return []op.Op{
		pointwise("ReluGrad", relu[float32], relu[float64]),
	}
}

func pointwise(typ string, single func(dx, y, dy []float32), double func(dx, y, dy []float64)) op.Op {
	return op.Op{Type: typ, Shape: alike(2), InPlace: []int{1}, Run: byType(inPieces(single), inPieces(double))}
}

// grain is how many elements are worth handing to another worker.
const grain = 16 << 10

func inPieces[T number](f func(dx, y, dy []T)) func(*op.Call) error {
	return func(c *op.Call) error {
		y, dy, dx := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
		c.Pool.Rows(len(dx), grain, func(from, to int) { f(dx[from:to], y[from:to], dy[from:to]) })
		return nil
	}
}

// relu passes the gradient where the output is positive.
func relu[T number](dx, y, dy []T) {
	for i := range dx {
		if y[i] > 0 {
			dx[i] = dy[i]
		} else {
			dx[i] = 0
		}
	}
}
