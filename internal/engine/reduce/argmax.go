package reduce

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func argOps() []op.Op {
	var ops []op.Op
	for _, name := range []string{"ArgMax", "ArgMin"} {
		ops = append(ops, op.Op{Type: name, Since: 1, Shape: argShape, Run: runArg, Work: argWork})
	}
	return ops
}

func argShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Numbers.Tensor(in, 0, "data")
	if err != nil {
		return nil, err
	}
	axis, err := op.Axis(n.Int("axis", 0), len(x.Shape))
	if err != nil {
		return nil, err
	}
	reduced := make([]bool, len(x.Shape))
	reduced[axis] = true
	shape := reducedShape(x.Shape, reduced, n.Bool("keepdims", true))
	if x.Shape[axis] == 0 && op.Product(shape) > 0 {
		return nil, fmt.Errorf("input data is %s, axis %d is empty", x, axis)
	}
	return []ir.Spec{{DType: ir.Int64, Shape: shape}}, nil
}

func argLanes(n *op.Node, in []*ir.Array) lanes {
	axis, err := op.Axis(n.Int("axis", 0), len(in[0].Shape))
	if err != nil {
		return lanes{}
	}
	return lanesOf(in[0], axis)
}

func argWork(n *op.Node, in []*ir.Array, workers int) int64 {
	return int64(workers) * argLanes(n, in).bytes(in[0].DType)
}

func runArg(c *op.Call) error {
	switch dt := c.In[0].DType; {
	case (block.Float | block.Halves).Has(dt):
		arg[float32](c)
	case dt == ir.Double:
		arg[float64](c)
	case block.Signed.Has(dt):
		arg[int64](c)
	case block.Unsigned.Has(dt):
		arg[uint64](c)
	default:
		return unexpected(c, dt)
	}
	return nil
}

func arg[T numeric](c *op.Call) {
	dst := ir.View[int64](c.Out[0])
	last := c.Bool("select_last_index", false)
	best := slices.Max[[]T]
	if c.ID.Type == "ArgMin" {
		best = slices.Min[[]T]
	}
	eachLane(c, argLanes(c.Node, c.In), 1, 0, func(i int, x []T, _ block.Scratch) {
		dst[i] = int64(find(x, best(x), last))
	})
}

// find is the first or last index of v, which is among x; NaN equals NaN, and is the best in both orders, as in NumPy.
func find[T numeric](x []T, v T, last bool) int {
	at := 0
	for i, w := range x {
		if w == v || w != w && v != v {
			at = i
			if !last {
				break
			}
		}
	}
	return at
}
