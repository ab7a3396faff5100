package movement

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// views share the memory of their first input, with another shape.
func views() []op.Op {
	return []op.Op{
		{Type: "Reshape", Since: 5, View: true, Shape: reshape},
		{Type: "Flatten", Since: 1, View: true, Shape: flatten},
		{Type: "Squeeze", Since: 1, View: true, Shape: squeeze(listAttribute)},
		{Type: "Squeeze", Since: 13, View: true, Shape: squeeze(listInput)},
		{Type: "Unsqueeze", Since: 1, View: true, Shape: unsqueeze(listAttribute)},
		{Type: "Unsqueeze", Since: 13, View: true, Shape: unsqueeze(listInput)},
	}
}

func reshape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	data, err := op.Arg(in, 0, "data")
	if err != nil {
		return nil, err
	}
	target, err := op.Arg(in, 1, "shape")
	if err != nil {
		return nil, err
	}
	dims, err := op.Ints(target)
	if err != nil {
		return nil, err
	}
	shape, err := reshaped(data.Shape, dims, n.Bool("allowzero", false))
	if err != nil {
		return nil, fmt.Errorf("shape %v for data of shape %v: %w", dims, data.Shape, err)
	}
	return op.One(data.DType, shape...)
}

// reshaped computes the dimension -1 from the number of elements, and replaces 0 by the old size unless zeros
// (allowzero) is set.
func reshaped(old, dims []int64, zeros bool) ([]int64, error) {
	shape := slices.Clone(dims)
	// Replaced by 1 while the other sizes are multiplied.
	open := slices.Index(dims, -1)
	if open >= 0 {
		shape[open] = 1
	}
	for i, d := range dims {
		if d == 0 && !zeros {
			if i >= len(old) {
				return nil, fmt.Errorf("axis %d is 0 (unchanged), and the input has no such axis", i)
			}
			shape[i] = old[i]
		}
	}
	if err := (ir.Spec{Shape: shape}).Valid(); err != nil {
		return nil, err
	}
	have, want := op.Product(old), op.Product(shape)
	if open >= 0 {
		if want == 0 {
			return nil, errors.New("-1 is ambiguous for an empty tensor")
		}
		shape[open] = have / want
		want *= shape[open]
	}
	if have != want {
		return nil, fmt.Errorf("%d elements do not match", have)
	}
	return shape, nil
}

func flatten(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	axis := n.Int("axis", 1)
	rank := int64(len(a.Shape))
	if axis < -rank || axis > rank {
		return nil, fmt.Errorf("axis %d is out of range for rank %d", axis, rank)
	}
	if axis < 0 {
		axis += rank
	}
	return op.One(a.DType, op.Product(a.Shape[:axis]), op.Product(a.Shape[axis:]))
}

// A list is the source of an operator's list of integers: an attribute or, in later versions, an input. It returns
// false if the list is absent.
type list func(n *op.Node, in []*ir.Array, name string, input int) ([]int64, bool, error)

func listAttribute(n *op.Node, _ []*ir.Array, name string, _ int) ([]int64, bool, error) {
	return n.Ints(name), n.Has(name), nil
}

func listInput(_ *op.Node, in []*ir.Array, name string, input int) ([]int64, bool, error) {
	a := op.Opt(in, input)
	if a == nil {
		return nil, false, nil
	}
	xs, err := op.Ints(a)
	if err != nil && !errors.Is(err, op.ErrUnknown) {
		err = fmt.Errorf("input %s: %w", name, err)
	}
	return xs, true, err
}

// of are input 0 and the axes chosen for it.
func (l list) of(n *op.Node, in []*ir.Array) (a *ir.Array, axes []int64, given bool, err error) {
	if a, err = op.Arg(in, 0, "data"); err != nil {
		return nil, nil, false, err
	}
	axes, given, err = l(n, in, "axes", 1)
	return a, axes, given, err
}

func squeeze(axes list) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		a, chosen, given, err := axes.of(n, in)
		if err != nil {
			return nil, err
		}
		drop, err := marked(chosen, len(a.Shape))
		if err != nil {
			return nil, err
		}
		shape := make([]int64, 0, len(a.Shape))
		for i, d := range a.Shape {
			switch {
			case drop[i] && d != 1:
				return nil, fmt.Errorf("axis %d of shape %v is not 1 and cannot be squeezed", i, a.Shape)
			case !drop[i] && (given || d != 1):
				shape = append(shape, d)
			}
		}
		return op.One(a.DType, shape...)
	}
}

func unsqueeze(axes list) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		a, chosen, given, err := axes.of(n, in)
		if err != nil {
			return nil, err
		}
		if !given {
			return nil, errors.New("axes are missing")
		}
		fresh, err := marked(chosen, len(a.Shape)+len(chosen))
		if err != nil {
			return nil, err
		}
		rest := a.Shape
		shape := make([]int64, len(fresh))
		for i := range shape {
			if shape[i] = 1; !fresh[i] {
				shape[i], rest = rest[0], rest[1:]
			}
		}
		return op.One(a.DType, shape...)
	}
}

// marked is true at each of the axes, and an error if one is repeated.
func marked(axes []int64, rank int) ([]bool, error) {
	marks := make([]bool, rank)
	for _, a := range axes {
		i, err := op.Axis(a, rank)
		if err != nil {
			return nil, err
		}
		if marks[i] {
			return nil, fmt.Errorf("axis %d is repeated", i)
		}
		marks[i] = true
	}
	return marks, nil
}
