package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// concatShape is QLinearConcat's: inputs Y's scale and zero point, and then each operand with its scale and zero point.
func concatShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if len(in) < 5 || len(in)%3 != 2 {
		return nil, fmt.Errorf("%d inputs, want Y's scale and zero point and three for each operand", len(in))
	}
	zero, err := op.Arg(in, 1, "Y_zero_point")
	if err != nil {
		return nil, err
	}
	if err := checkParams(in, 0, "Y", zero.DType); err != nil {
		return nil, err
	}
	var out ir.Spec
	axis := 0
	for i := 2; i < len(in); i += 3 {
		x, err := triple(in, i, fmt.Sprintf("X%d", i/3))
		if err != nil {
			return nil, err
		}
		if i == 2 {
			if axis, err = op.Axis(n.Int("axis", 0), len(x.Shape)); err != nil {
				return nil, err
			}
			out = ir.Spec{DType: zero.DType, Shape: append([]int64(nil), x.Shape...)}
			if x.DType != zero.DType {
				return nil, fmt.Errorf("input X0 is %s, want the type of Y, %s", x, zero.DType)
			}
			continue
		}
		if !canConcatenate(x, out, axis) {
			return nil, fmt.Errorf("input X%d is %s, which cannot be concatenated with %s along axis %d", i/3, x, out,
				axis)
		}
		out.Shape[axis] += x.Shape[axis]
	}
	return []ir.Spec{out}, out.Valid()
}

// canConcatenate reports whether x equals a spec up to one axis.
func canConcatenate(x *ir.Array, s ir.Spec, axis int) bool {
	if x.DType != s.DType || len(x.Shape) != len(s.Shape) {
		return false
	}
	for i, d := range x.Shape {
		if i != axis && d != s.Shape[i] {
			return false
		}
	}
	return true
}

// runQLinearConcat concatenates the operands, requantized to the scale of the result.
func runQLinearConcat(c *op.Call) error {
	y, err := paramsAt(c.In, 0, c.Out[0].DType)
	if err != nil {
		return err
	}
	shape := c.Out[0].Shape
	axis, err := op.Axis(c.Int("axis", 0), len(shape))
	if err != nil {
		return err
	}
	outer, whole := int(op.Product(shape[:axis])), int(op.Product(shape[axis:]))
	at := 0
	for i := 2; i < len(c.In); i += 3 {
		x, err := paramsAt(c.In, i+1, c.In[i].DType)
		if err != nil {
			return err
		}
		n := int(op.Product(c.In[i].Shape[axis:]))
		table := y.table(x.values())
		for row := range outer {
			to, from := part(c.Out[0].Data, row, whole)[at:], part(c.In[i].Data, row, n)
			if x == y {
				copy(to, from)
			} else {
				lookUp(c.Pool, to, from, table)
			}
		}
		at += n
	}
	return nil
}
