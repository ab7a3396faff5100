package reduce

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// sums are the types of reductions, except for those by comparison.
const sums = block.Floats | 1<<ir.Int32 | 1<<ir.Int64 | 1<<ir.Uint32 | 1<<ir.Uint64

// reductions are the operators with attribute axes, and the version from which the axes are an input.
var reductions = []struct {
	name      string
	types     block.Set
	axesInput int64
}{
	{"ReduceL1", sums, 18},
	{"ReduceL2", sums, 18},
	{"ReduceLogSum", sums, 18},
	{"ReduceLogSumExp", sums, 18},
	{"ReduceMax", block.Numbers | block.Bool, 18},
	{"ReduceMean", sums, 18},
	{"ReduceMin", block.Numbers | block.Bool, 18},
	{"ReduceProd", sums, 18},
	{"ReduceSum", sums, 13},
	{"ReduceSumSquare", sums, 18},
}

func reduceOps() []op.Op {
	var ops []op.Op
	for _, r := range reductions {
		ops = append(ops, reduceOp(r.name, 1, r.types, false), reduceOp(r.name, r.axesInput, r.types, true))
	}
	// Opset 28 removed logarithms of integers.
	ops = append(ops, reduceOp("ReduceLogSum", 28, block.Floats, true),
		reduceOp("ReduceLogSumExp", 28, block.Floats, true))
	return ops
}

func reduceOp(name string, since int64, types block.Set, fromInput bool) op.Op {
	layoutIn := func(n *op.Node, in []*ir.Array) (layout, error) {
		reduced, err := reducedAxes(n, in, fromInput)
		if err != nil {
			return layout{}, err
		}
		return layoutOf(in[0].Shape, reduced), nil
	}
	return op.Op{
		Type: name, Since: since,
		Shape: func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
			x, err := types.Tensor(in, 0, "data")
			if err != nil {
				return nil, err
			}
			reduced, err := reducedAxes(n, in, fromInput)
			if err != nil {
				return nil, err
			}
			return []ir.Spec{{DType: x.DType, Shape: reducedShape(x.Shape, reduced, n.Bool("keepdims", true))}}, nil
		},
		Work: func(n *op.Node, in []*ir.Array, workers int) int64 {
			l, err := layoutIn(n, in)
			if err != nil {
				return 0
			}
			return l.work(workers)
		},
		Run: func(c *op.Call) error {
			l, err := layoutIn(c.Node, c.In)
			if err != nil {
				return err
			}
			return reduce(c, l)
		},
	}
}

func reduce(c *op.Call, l layout) error {
	switch dt := c.In[0].DType; {
	case (block.Float | block.Halves).Has(dt):
		return reduceSingles(c, l)
	case dt == ir.Double:
		return reduceReals[float64](c, l)
	case block.Signed.Has(dt):
		return reduceInts(c, l, int64(-1)<<(dt.Bits()-1))
	case (block.Unsigned | block.Bool).Has(dt):
		return reduceInts(c, l, uint64(0))
	default:
		return unexpected(c, dt)
	}
}

// unexpected is the error for a type that the Shape function accepted.
func unexpected(c *op.Call, dt ir.DType) error {
	return fmt.Errorf("%s is not implemented for %s", c.ID.Type, dt)
}

func reduceReals[T floatElement](c *op.Call, l layout) error {
	switch c.ID.Type {
	case "ReduceMax":
		return run(c, l, c.In[0], extreme(T(math.Inf(-1)), func(a, b T) T { return max(a, b) }))
	case "ReduceMin":
		return run(c, l, c.In[0], extreme(T(math.Inf(1)), func(a, b T) T { return min(a, b) }))
	case "ReduceLogSumExp":
		return run(c, l, c.In[0], logSumExp[T]())
	}
	return run(c, l, c.In[0], realFold[T](c.ID.Type))
}

// reduceInts reduces integers of a type with this minimum; false is less than true.
func reduceInts[T integer](c *op.Call, l layout, least T) error {
	switch c.ID.Type {
	case "ReduceMax":
		return run(c, l, c.In[0], extreme(least, func(a, b T) T { return max(a, b) }))
	case "ReduceMin":
		// The complement of the minimum is the maximum, of signed types and unsigned ones.
		return run(c, l, c.In[0], extreme(^least, func(a, b T) T { return min(a, b) }))
	// Roots and logarithms of integers are computed in float64, and rounded to the type.
	case "ReduceL2", "ReduceLogSum", "ReduceLogSumExp":
		return reduceReals[float64](c, l)
	}
	return run(c, l, c.In[0], intFold[T](c.ID.Type))
}
