package movement

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// joins put tensors behind one another and take them apart again.
func joins() []op.Op {
	return []op.Op{
		{Type: "Concat", Since: 4, Shape: concatShape, Run: runConcat},
		{Type: "Split", Since: 2, Shape: splitShape(listAttribute), Run: runSplit(listAttribute)},
		{Type: "Split", Since: 13, Shape: splitShape(listInput), Run: runSplit(listInput)},
	}
}

func concatShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if !n.Has("axis") {
		return nil, errors.New("attribute axis is missing")
	}
	spec, err := joined(in, n.Int("axis", 0))
	return []ir.Spec{spec}, err
}

// joined is the type of the tensors one behind the other along that axis.
func joined(in []*ir.Array, axis int64) (ir.Spec, error) {
	first, err := op.Arg(in, 0, "0")
	if err != nil {
		return ir.Spec{}, err
	}
	at, err := op.Axis(axis, len(first.Shape))
	if err != nil {
		return ir.Spec{}, err
	}
	shape := slices.Clone(first.Shape)
	for i := 1; i < len(in); i++ {
		a, err := op.Arg(in, i, fmt.Sprint(i))
		if err != nil {
			return ir.Spec{}, err
		}
		if a.DType != first.DType || !fits(a.Shape, first.Shape, at) {
			return ir.Spec{}, fmt.Errorf("input %d is %s, which does not continue %s along axis %d", i, a, first, at)
		}
		shape[at] += a.Shape[at]
		if err := (ir.Spec{Shape: shape}).Valid(); err != nil {
			return ir.Spec{}, err
		}
	}
	return ir.Spec{DType: first.DType, Shape: shape}, nil
}

// fits reports whether the shapes are equal but for that axis.
func fits(a, b []int64, axis int) bool {
	return len(a) == len(b) && slices.Equal(a[:axis], b[:axis]) && slices.Equal(a[axis+1:], b[axis+1:])
}

func runConcat(c *op.Call) error {
	axis, err := op.Axis(c.Int("axis", 0), len(c.Out[0].Shape))
	if err != nil {
		return err
	}
	join(c.Pool, c.Out[0], c.In, axis)
	return nil
}

// join copies the parts into dst, one behind the other along axis.
func join(p *op.Pool, dst *ir.Array, parts []*ir.Array, axis int) {
	strides := op.Strides(dst.Shape)
	at := int64(0)
	for _, part := range parts {
		s := newStrided(part.Shape, strides, op.Strides(part.Shape))
		s.dst = int(at * strides[axis])
		if part.Elems() > 0 {
			move(p, s, dst, part)
		}
		at += part.Shape[axis]
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

// evenly cuts size into count parts. Since version 18 the last one may be smaller.
func evenly(size, count, version int64) ([]int64, error) {
	if count < 1 || count > maxParts {
		return nil, fmt.Errorf("%d outputs: there must be 1 to %d", count, maxParts)
	}
	part := (size + count - 1) / count
	if size%count != 0 && version < 18 {
		return nil, fmt.Errorf("%d cannot be cut into %d equal parts", size, count)
	}
	sizes := make([]int64, count)
	for i := range sizes {
		sizes[i] = min(part, size)
		size -= sizes[i]
	}
	return sizes, nil
}

// maxParts bounds how many parts a tensor may be cut into, empty ones too.
const maxParts = 1 << 20

// partsOf are the types of a's parts of those sizes, which must add up.
func partsOf(a *ir.Array, axis int, sizes []int64) ([]ir.Spec, error) {
	specs := make([]ir.Spec, len(sizes))
	left := a.Shape[axis]
	for i, size := range sizes {
		if size < 0 || size > left {
			return nil, fmt.Errorf("split %v does not cut axis %d of shape %v", sizes, axis, a.Shape)
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

// runSplit asks for the sizes again: outputs that nobody reads are not there to tell theirs.
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

// part copies src's parts of those lengths along axis. Parts that are nil are passed over.
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
