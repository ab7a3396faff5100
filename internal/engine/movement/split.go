package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func splits() []op.Op {
	return []op.Op{
		{Type: "Split", Since: 2, Shape: splitShape(listAttribute), Run: runSplit(listAttribute)},
		{Type: "Split", Since: 13, Shape: splitShape(listInput), Run: runSplit(listInput)},
	}
}

func splitShape(sizes list) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		a, err := op.Arg(in, 0, "input")
		if err != nil {
			return nil, err
		}
		axis, err := op.Axis(n.Int("axis", 0), len(a.Shape))
		if err != nil {
			return nil, err
		}
		parts, given, err := sizes(n, in, "split", 1)
		if err == nil && !given {
			parts, err = evenly(a.Shape[axis], n.Int("num_outputs", int64(n.NumOut())), n.Version)
		}
		if err != nil {
			return nil, err
		}
		if len(parts) != n.NumOut() {
			return nil, fmt.Errorf("%d sizes in split for %d outputs", len(parts), n.NumOut())
		}
		return partsOf(a, axis, parts)
	}
}

// evenly splits size into count parts. Since version 18 the last one may be smaller.
func evenly(size, count, version int64) ([]int64, error) {
	if count < 1 || count > maxParts {
		return nil, fmt.Errorf("%d outputs, want 1 to %d", count, maxParts)
	}
	part := (size + count - 1) / count
	if size%count != 0 && version < 18 {
		return nil, fmt.Errorf("size %d is not divisible into %d equal parts", size, count)
	}
	sizes := make([]int64, count)
	for i := range sizes {
		sizes[i] = min(part, size)
		size -= sizes[i]
	}
	return sizes, nil
}

// maxParts bounds the number of parts, including empty ones.
const maxParts = 1 << 20

// partsOf are the types of a's parts of those sizes, whose sum must be the size of the axis.
func partsOf(a *ir.Array, axis int, sizes []int64) ([]ir.Spec, error) {
	specs := make([]ir.Spec, len(sizes))
	left := a.Shape[axis]
	for i, size := range sizes {
		if size < 0 || size > left {
			return nil, fmt.Errorf("split %v does not match axis %d of shape %v", sizes, axis, a.Shape)
		}
		left -= size
		shape := slices.Clone(a.Shape)
		shape[axis] = size
		specs[i] = ir.Spec{DType: a.DType, Shape: shape}
	}
	if left != 0 {
		return nil, fmt.Errorf("split %v leaves %d of axis %d of shape %v", sizes, left, axis, a.Shape)
	}
	return specs, nil
}

// runSplit computes the sizes again: outputs without consumers are absent.
func runSplit(sizes list) func(*op.Call) error {
	shape := splitShape(sizes)
	return func(c *op.Call) error {
		specs, err := shape(c.Node, c.In)
		if err != nil {
			return err
		}
		src := c.In[0]
		axis, err := op.Axis(c.Int("axis", 0), len(src.Shape))
		if err != nil {
			return err
		}
		lengths := make([]int64, len(specs))
		for i, part := range specs {
			lengths[i] = part.Shape[axis]
		}
		part(c.Pool, c.Out, src, axis, lengths)
		return nil
	}
}

// part copies src's parts of those lengths along axis, except nil ones.
func part(p *op.Pool, parts []*ir.Array, src *ir.Array, axis int, lengths []int64) {
	strides := op.Strides(src.Shape)
	at := int64(0)
	for i, dst := range parts {
		if dst != nil {
			s := newStrided(dst.Shape, op.Strides(dst.Shape), strides)
			s.src = int(at * strides[axis])
			move(p, s, dst, src)
		}
		at += lengths[i]
	}
}
