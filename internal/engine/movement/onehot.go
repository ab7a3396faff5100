package movement

import (
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func oneHotShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	at, err := op.Arg(in, 0, "indices")
	if err != nil {
		return nil, err
	}
	if err := number.Check(at.DType); err != nil {
		return nil, err
	}
	values, err := op.Arg(in, 2, "values")
	if err != nil {
		return nil, err
	}
	if values.Elems() != 2 {
		return nil, fmt.Errorf("values is %s, want two elements", values)
	}
	depth, err := scalar(in, 1, "depth")
	if err != nil {
		return nil, err
	}
	if depth < 0 {
		return nil, fmt.Errorf("depth %d is negative", depth)
	}
	axis, err := op.Axis(n.Int("axis", -1), len(at.Shape)+1)
	if err != nil {
		return nil, err
	}
	return op.One(values.DType, slices.Insert(slices.Clone(at.Shape), axis, depth)...)
}

// scalar is input i, one number of any type, truncated.
func scalar(in []*ir.Array, i int, name string) (int64, error) {
	a, err := op.Arg(in, i, name)
	if err != nil {
		return 0, err
	}
	xs, err := asInts(a)
	if err != nil {
		return 0, err
	}
	if len(xs) != 1 {
		return 0, fmt.Errorf("%s is %s, want one number", name, a)
	}
	return xs[0], nil
}

// asInts are the elements of a as integers.
func asInts(a *ir.Array) ([]int64, error) {
	if !a.DType.IsFloat() {
		return op.Ints(a)
	}
	if !op.IsKnown(a) {
		return nil, op.ErrUnknown
	}
	xs := make([]float64, a.Elems())
	number.Read(xs, a, 0)
	out := make([]int64, len(xs))
	for i, x := range xs {
		out[i] = truncated(x)
	}
	return out, nil
}

// truncated is x as an integer. Go leaves the conversion of NaN and of numbers out of range to the processor: 0 on some
// would be an index. NaN is the lowest integer, as in ONNX Runtime on amd64, and others are the nearest one: none of
// them is an index.
func truncated(x float64) int64 {
	switch {
	case x >= 1<<63:
		return math.MaxInt64
	case x >= -1<<63:
		return int64(x)
	}
	return math.MinInt64
}

// runOneHot writes the off value everywhere, and then the on value at the indices. Indices out of range are ignored.
func runOneHot(c *op.Call) error {
	dst, values := c.Out[0], c.In[2]
	at, err := asInts(c.In[0])
	if err != nil || dst.Elems() == 0 {
		return err
	}
	axis, err := op.Axis(c.Int("axis", -1), len(dst.Shape))
	if err != nil {
		return err
	}
	depth, inner := dst.Shape[axis], op.Product(dst.Shape[axis+1:])
	on := make([]int64, 0, len(at))
	for i, x := range at {
		if x < 0 {
			x += depth
		}
		if x >= 0 && x < depth {
			outer, rest := int64(i)/inner, int64(i)%inner
			on = append(on, (outer*depth+x)*inner+rest)
		}
	}
	// values are (off, on): the first one fills, the second one is copied from offset 1.
	move(c.Pool, fill{}, dst, values)
	move(c.Pool, &runs{n: len(on), size: 1, dst: on, src: slices.Repeat([]int64{1}, len(on)), outer: 1}, dst, values)
	return nil
}
