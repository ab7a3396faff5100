package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// scatters write updates into a copy of their first input. Work holds the positions.
func scatters() []op.Op {
	return []op.Op{
		{Type: "Scatter", Since: 9, Shape: scatterElementsShape, Run: runScatterElements, Work: wordEach(1),
			InPlace: []int{0}},
		{
			Type: "ScatterElements", Since: 11, Shape: scatterElementsShape, Run: runScatterElements,
			Work: wordEach(1), InPlace: []int{0},
			Pack: packScatterElements,
		},
		{Type: "ScatterND", Since: 11, Shape: scatterNDShape, Run: runScatterND, Work: wordEach(1), InPlace: []int{0}},
		{Type: "TensorScatter", Since: 24, Shape: tensorScatterShape, Run: runTensorScatter, Work: tensorScatterWork,
			InPlace: []int{0}},
	}
}

// scattered are the three inputs of ScatterElements and ScatterND, with checked types.
func scattered(n *op.Node, in []*ir.Array) (data, at, updates *ir.Array, err error) {
	if data, err = op.Arg(in, 0, "data"); err != nil {
		return nil, nil, nil, err
	}
	if at, err = indices(in, 1); err != nil {
		return nil, nil, nil, err
	}
	if updates, err = op.Arg(in, 2, "updates"); err != nil {
		return nil, nil, nil, err
	}
	if updates.DType != data.DType {
		return nil, nil, nil, fmt.Errorf("updates are %s, data are %s", updates.DType, data.DType)
	}
	return data, at, updates, checkReduction(n, data.DType)
}

func scatterElementsShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	data, at, updates, err := scattered(n, in)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(at.Shape, updates.Shape) {
		return nil, fmt.Errorf("updates of shape %v for indices of shape %v", updates.Shape, at.Shape)
	}
	if _, err := alongAxis(n, data.Shape, at.Shape); err != nil {
		return nil, err
	}
	return op.One(data.DType, data.Shape...)
}

func runScatterElements(c *op.Call) error {
	places, err := elementPlaces(c, c.In[0].Shape, c.In[1])
	if err != nil {
		return err
	}
	scatter(c, places, 1)
	return nil
}

func scatterNDShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	data, at, updates, err := scattered(n, in)
	if err != nil {
		return nil, err
	}
	_, width, err := tuples(data.Shape, at.Shape, 0)
	if err != nil {
		return nil, err
	}
	want := slices.Concat(at.Shape[:len(at.Shape)-1], data.Shape[width:])
	if !slices.Equal(updates.Shape, want) {
		return nil, fmt.Errorf("updates of shape %v, where indices and data want %v", updates.Shape, want)
	}
	return op.One(data.DType, data.Shape...)
}

func runScatterND(c *op.Call) error {
	places, size, err := tuplePlaces(c, c.In[0].Shape, c.In[1], 0)
	if err != nil {
		return err
	}
	scatter(c, places, size)
	return nil
}

// scatter writes runs of that size of input 2 at the positions. Overlapping ones are combined in order.
func scatter(c *op.Call, places []int64, size int) {
	dst, updates := c.Out[0], c.In[2]
	copyAll(c.Pool, dst, c.In[0])
	if reduction := c.Text("reduction", "none"); reduction != "none" {
		reducers[dst.DType](dst, updates, places, size, reduction)
		return
	}
	move(c.Pool, &runs{n: len(places), size: size, dst: places, outer: 1}, dst, updates)
}

// cache is the past of TensorScatter, its update, and the sequence axis.
func cache(n *op.Node, in []*ir.Array) (past, update *ir.Array, axis int, err error) {
	if past, err = op.Arg(in, 0, "past_cache"); err != nil {
		return nil, nil, 0, err
	}
	if update, err = op.Arg(in, 1, "update"); err != nil {
		return nil, nil, 0, err
	}
	if axis, err = op.Axis(n.Int("axis", -2), len(past.Shape)); err != nil {
		return nil, nil, 0, err
	}
	if axis == 0 {
		return nil, nil, 0, fmt.Errorf("axis %d is the batch axis", n.Int("axis", -2))
	}
	if past.DType != update.DType || !fits(past.Shape, update.Shape, axis) || update.Shape[axis] > past.Shape[axis] {
		return nil, nil, 0, fmt.Errorf("update %s does not match cache %s along axis %d", update, past, axis)
	}
	return past, update, axis, nil
}

func tensorScatterShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	past, _, _, err := cache(n, in)
	if err != nil {
		return nil, err
	}
	if mode := n.Text("mode", "linear"); mode != "linear" && mode != "circular" {
		return nil, fmt.Errorf("mode is %q, want linear or circular", mode)
	}
	if at := op.Opt(in, 2); at != nil && (at.DType != ir.Int64 || !slices.Equal(at.Shape, past.Shape[:1])) {
		return nil, fmt.Errorf("write_indices are %s, want one int64 for each of %d samples", at, past.Shape[0])
	}
	return op.One(past.DType, past.Shape...)
}

func tensorScatterWork(n *op.Node, in []*ir.Array, _ int) int64 {
	_, update, axis, err := cache(n, in)
	if err != nil {
		return 0
	}
	return 8 * op.Product(update.Shape[:axis+1])
}

func runTensorScatter(c *op.Call) error {
	past, update, axis, err := cache(c.Node, c.In)
	if err != nil {
		return err
	}
	first := make([]int64, past.Shape[0])
	if c.Opt(2) != nil {
		copy(first, ir.View[int64](c.In[2]))
	}
	size, length, inner := past.Shape[axis], update.Shape[axis], op.Product(past.Shape[axis+1:])
	circular := c.Text("mode", "linear") == "circular"
	for b, at := range first {
		if length > 0 && !circular && (at < 0 || at > size-length) {
			return fmt.Errorf("write index %d of sample %d: %d steps exceed %d", at, b, length, size)
		}
		// Go's remainder has the sign of the index.
		if size > 0 {
			first[b] = (at%size + size) % size
		}
	}
	places := words(c)
	each := op.Product(past.Shape[1:axis]) // prefixes in a sample
	for i := range places {
		prefix, step := int64(i)/length, int64(i)%length
		places[i] = (prefix*size + (first[prefix/each]+step)%size) * inner
	}
	copyAll(c.Pool, c.Out[0], past)
	move(c.Pool, &runs{n: len(places), size: int(inner), dst: places, outer: 1}, c.Out[0], update)
	return nil
}
