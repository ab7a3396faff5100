package movement

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// sequences are operators on lists of tensors, which have no static types: their types are known after Run only. A
// tensor is copied when it becomes an item, since its memory is reused; items are immutable and shared.
func sequences() []op.Op {
	return []op.Op{
		{Type: "SequenceEmpty", Since: 11, Run: runSequenceEmpty},
		{Type: "SequenceConstruct", Since: 11, Run: runSequenceConstruct},
		{Type: "SequenceInsert", Since: 11, Run: runSequenceInsert},
		{Type: "SequenceErase", Since: 11, Run: runSequenceErase},
		{Type: "SequenceAt", Since: 11, Run: runSequenceAt},
		{Type: "SequenceLength", Since: 11, Run: runSequenceLength},
		{Type: "SplitToSequence", Since: 11, Run: runSplitToSequence},
		{Type: "ConcatFromSequence", Since: 11, Run: runConcatFromSequence},
	}
}

func sequenceOf(items []*ir.Array) *ir.Array { return &ir.Array{Kind: ir.Sequence, Items: items} }

// items are those of input i, a sequence. They must not be modified.
func items(c *op.Call, i int) ([]*ir.Array, error) {
	a, err := op.Arg(c.In, i, "input_sequence")
	if err != nil {
		return nil, err
	}
	if a.Kind != ir.Sequence {
		return nil, fmt.Errorf("input %d is %s, want a sequence", i, a)
	}
	return a.Items, nil
}

// position is input i, made non-negative, which must be below limit in a sequence of n; def if absent.
func position(c *op.Call, i, n, limit, def int) (int, error) {
	if c.Opt(i) == nil {
		return def, nil
	}
	a, err := op.Tensor(c.In, i, "position")
	if err != nil {
		return 0, err
	}
	xs, err := op.Ints(a)
	if err != nil {
		return 0, err
	}
	if len(xs) != 1 {
		return 0, fmt.Errorf("position is %s, want one number", a)
	}
	at := xs[0]
	if at < 0 {
		at += int64(n)
	}
	if at < 0 || at >= int64(limit) {
		return 0, fmt.Errorf("position %d is out of range for a sequence of %d", xs[0], n)
	}
	return int(at), nil
}

func runSequenceEmpty(c *op.Call) error {
	c.Out[0] = sequenceOf(nil)
	return nil
}

func runSequenceConstruct(c *op.Call) error {
	if len(c.In) == 0 {
		return errors.New("inputs are missing")
	}
	for i := range c.In {
		a, err := op.Tensor(c.In, i, fmt.Sprint(i))
		if err != nil {
			return err
		}
		if err := sameType(a, c.In[0]); err != nil {
			return err
		}
	}
	bytes := int64(0)
	for _, a := range c.In {
		bytes = op.Plus(bytes, op.Held(a))
	}
	// Items are counted before they are copied, as nothing knows their sizes before the run.
	if err := c.Account.Check(bytes); err != nil {
		return err
	}
	list := make([]*ir.Array, len(c.In))
	for i, a := range c.In {
		list[i] = a.Clone()
	}
	c.Out[0] = sequenceOf(list)
	return nil
}

// sameType is an error if a and item cannot be items of one sequence.
func sameType(a, item *ir.Array) error {
	if a.Kind != item.Kind || a.DType != item.DType {
		return fmt.Errorf("%s cannot be an item of a sequence of %s", a, item)
	}
	return nil
}

func runSequenceInsert(c *op.Call) error {
	old, err := items(c, 0)
	if err != nil {
		return err
	}
	a, err := op.Tensor(c.In, 1, "tensor")
	if err != nil {
		return err
	}
	at, err := position(c, 2, len(old), len(old)+1, len(old))
	if err != nil {
		return err
	}
	if len(old) > 0 {
		if err := sameType(a, old[0]); err != nil {
			return err
		}
	}
	if err := c.Account.Check(op.Held(a)); err != nil {
		return err
	}
	c.Out[0] = sequenceOf(slices.Concat(old[:at], []*ir.Array{a.Clone()}, old[at:]))
	return nil
}

func runSequenceErase(c *op.Call) error {
	old, err := items(c, 0)
	if err != nil {
		return err
	}
	if len(old) == 0 {
		return errors.New("the sequence is empty")
	}
	at, err := position(c, 1, len(old), len(old), len(old)-1)
	if err != nil {
		return err
	}
	c.Out[0] = sequenceOf(slices.Concat(old[:at], old[at+1:]))
	return nil
}

func runSequenceAt(c *op.Call) error {
	list, err := items(c, 0)
	if err != nil {
		return err
	}
	if _, err := op.Arg(c.In, 1, "position"); err != nil {
		return err
	}
	at, err := position(c, 1, len(list), len(list), 0)
	if err != nil {
		return err
	}
	c.Out[0] = list[at]
	return nil
}

func runSequenceLength(c *op.Call) error {
	list, err := items(c, 0)
	if err != nil {
		return err
	}
	c.Out[0] = ir.ArrayOf([]int64{int64(len(list))})
	return nil
}

func runSplitToSequence(c *op.Call) error {
	a, err := op.Tensor(c.In, 0, "input")
	if err != nil {
		return err
	}
	axis, err := op.Axis(c.Int("axis", 0), len(a.Shape))
	if err != nil {
		return err
	}
	sizes, err := partSizes(c, a.Shape[axis])
	if err != nil {
		return err
	}
	specs, err := partsOf(a, axis, sizes)
	if err != nil {
		return err
	}
	if err := c.Account.Check(op.Held(a)); err != nil {
		return err
	}
	parts := make([]*ir.Array, len(specs))
	for i, s := range specs {
		parts[i] = ir.NewArray(s.DType, s.Shape...)
	}
	part(c.Pool, parts, a, axis, sizes)
	if c.Opt(1) == nil && !c.Bool("keepdims", true) {
		for _, p := range parts {
			p.Shape = slices.Delete(p.Shape, axis, axis+1)
		}
	}
	c.Out[0] = sequenceOf(parts)
	return nil
}

// partSizes are the sizes of input split: a list, or one for all parts except possibly the last; 1 by default.
func partSizes(c *op.Call, size int64) ([]int64, error) {
	each := int64(1)
	if c.Opt(1) != nil {
		split, err := op.Tensor(c.In, 1, "split")
		if err != nil {
			return nil, err
		}
		sizes, err := op.Ints(split)
		if err != nil || len(split.Shape) > 0 {
			return sizes, err
		}
		if each = sizes[0]; each < 1 {
			return nil, fmt.Errorf("split is %d, want a positive number", each)
		}
	}
	if size/each > maxParts {
		return nil, fmt.Errorf("%d parts, maximum is %d", size/each, maxParts)
	}
	var sizes []int64
	for ; size > 0; size -= each {
		sizes = append(sizes, min(each, size))
	}
	return sizes, nil
}

func runConcatFromSequence(c *op.Call) error {
	list, err := items(c, 0)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("the sequence is empty")
	}
	if !c.Has("axis") {
		return errors.New("attribute axis is missing")
	}
	for _, a := range list {
		if a.Kind != ir.Dense {
			return fmt.Errorf("an item is %s, want a tensor", a)
		}
	}
	if c.Bool("new_axis", false) {
		if list, err = stacked(list, c.Int("axis", 0)); err != nil {
			return err
		}
	}
	spec, err := concatenated(list, c.Int("axis", 0))
	if err != nil {
		return err
	}
	axis, err := op.Axis(c.Int("axis", 0), len(spec.Shape))
	if err != nil {
		return err
	}
	y, err := c.Make(0, spec.DType, spec.Shape...)
	if err != nil {
		return err
	}
	concat(c.Pool, y, list, axis)
	return nil
}

// stacked are views of the tensors with a new axis of size 1.
func stacked(list []*ir.Array, axis int64) ([]*ir.Array, error) {
	out := make([]*ir.Array, len(list))
	for i, a := range list {
		at, err := op.Axis(axis, len(a.Shape)+1)
		if err != nil {
			return nil, err
		}
		view := *a
		view.Shape = slices.Insert(slices.Clone(a.Shape), at, 1)
		out[i] = &view
	}
	return out, nil
}
