package reduce

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// topOps: k is an attribute below opset 10. Results are always sorted.
func topOps() []op.Op {
	attr := op.Op{Type: "TopK", Since: 1, Shape: topShape(topAttr)}
	input := op.Op{Type: "TopK", Since: 10, Shape: topShape(topInput)}
	ops := []op.Op{attr, input}
	for i := range ops {
		ops[i].Run, ops[i].Work = runTop, topWork
	}
	return ops
}

func topAttr(n *op.Node, _ []*ir.Array) (int64, error) { return n.Int("k", -1), nil }

func topInput(_ *op.Node, in []*ir.Array) (int64, error) {
	k, err := block.Of(ir.Int64).Tensor(in, 1, "K")
	if err != nil {
		return 0, err
	}
	if k.Elems() != 1 {
		return 0, fmt.Errorf("input K is %s, want one number", k)
	}
	ks, err := op.Ints(k)
	if err != nil {
		return 0, err
	}
	return ks[0], nil
}

func topShape(count func(*op.Node, []*ir.Array) (int64, error)) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		x, err := block.Numbers.Tensor(in, 0, "X")
		if err != nil {
			return nil, err
		}
		axis, err := op.Axis(n.Int("axis", -1), len(x.Shape))
		if err != nil {
			return nil, err
		}
		k, err := count(n, in)
		if err != nil {
			return nil, err
		}
		if k < 0 || k > x.Shape[axis] {
			return nil, fmt.Errorf("k is %d, axis %d of %s has %d elements", k, axis, x, x.Shape[axis])
		}
		if x.Shape[axis] > math.MaxInt32 {
			return nil, fmt.Errorf("axis %d of %s exceeds 32-bit indices", axis, x)
		}
		shape := slices.Clone(x.Shape)
		shape[axis] = k
		return []ir.Spec{{DType: x.DType, Shape: shape}, {DType: ir.Int64, Shape: shape}}, nil
	}
}

func topLanes(n *op.Node, in []*ir.Array) lanes {
	axis, err := op.Axis(n.Int("axis", -1), len(in[0].Shape))
	if err != nil {
		return lanes{}
	}
	return lanesOf(in[0], axis)
}

func topWork(n *op.Node, in []*ir.Array, workers int) int64 {
	l := topLanes(n, in)
	return int64(workers) * (l.bytes(in[0].DType) + block.Bytes[int32](l.n))
}

func runTop(c *op.Call) error {
	switch dt := c.In[0].DType; {
	case (block.Float | block.Halves).Has(dt):
		top[float32](c)
	case dt == ir.Double:
		top[float64](c)
	case block.Signed.Has(dt):
		top[int64](c)
	case block.Unsigned.Has(dt):
		top[uint64](c)
	default:
		return unexpected(c, dt)
	}
	return nil
}

func top[T numeric](c *op.Call) {
	l := topLanes(c.Node, c.In)
	smallest := !c.Bool("largest", true)
	var values block.Writer[T]
	var indices []int64
	k := 0
	if y := c.Out[0]; y != nil {
		values, k = block.Write[T](y), int(y.Elems())/max(l.outer*l.inner, 1)
	}
	if len(c.Out) > 1 && c.Out[1] != nil {
		y := c.Out[1]
		indices, k = ir.View[int64](y), int(y.Elems())/max(l.outer*l.inner, 1)
	}
	eachLane(c, l, 4, block.Bytes[int32](l.n), func(i int, x []T, spare block.Scratch) {
		r := ranking[T]{x, smallest}
		for j, at := range r.best(block.Take[int32](&spare, l.n)[:k]) {
			out := (i/l.inner*k+j)*l.inner + i%l.inner
			if c.Out[0] != nil {
				values.Set(out, x[at])
			}
			if indices != nil {
				indices[out] = int64(at)
			}
		}
	})
}

// A ranking orders elements from the best on: by value, NaN being the greatest as in NumPy, then by index.
type ranking[T numeric] struct {
	x        []T
	smallest bool
}

func (r ranking[T]) before(i, j int32) bool {
	a, b := r.x[i], r.x[j]
	// Equal elements in the order of their indices, as the specification asks for; NaN is the greatest, as in NumPy.
	if a == b || a != a && b != b {
		return i < j
	}
	return (a > b || a != a) != r.smallest
}

// best fills at with the indices of the best elements, in order. It is a heap with the worst of them on top during the
// search.
func (r ranking[T]) best(at []int32) []int32 {
	k := len(at)
	if k == 0 {
		return at
	}
	for i := range at {
		at[i] = int32(i)
	}
	for i := k/2 - 1; i >= 0; i-- {
		r.sink(at, i)
	}
	for i := k; i < len(r.x); i++ {
		// The heap has k elements, so that the time is n·log k and the memory that of the result.
		if r.before(int32(i), at[0]) {
			at[0] = int32(i)
			r.sink(at, 0)
		}
	}
	slices.SortFunc(at, func(i, j int32) int {
		if r.before(i, j) {
			return -1
		}
		return 1
	})
	return at
}

func (r ranking[T]) sink(at []int32, i int) {
	for {
		child := 2*i + 1
		if child >= len(at) {
			return
		}
		if child+1 < len(at) && r.before(at[child], at[child+1]) {
			child++
		}
		if r.before(at[child], at[i]) {
			return
		}
		at[i], at[child] = at[child], at[i]
		i = child
	}
}
