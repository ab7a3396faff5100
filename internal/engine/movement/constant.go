package movement

import (
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// fills are the operators that generate constant values: Constant, ConstantOfShape, EyeLike.
func fills() []op.Op {
	return []op.Op{
		{Type: "Constant", Since: 1, Shape: constantShape, Run: runConstant},
		{Type: "ConstantOfShape", Since: 9, Shape: constantOfShapeShape, Run: runConstantOfShape,
			Pack: packConstantOfShape, Packs: true},
		{Type: "EyeLike", Since: 9, OfShape: true, Shape: eyeLikeShape, Run: runEyeLike},
		{Type: "OneHot", Since: 9, Shape: oneHotShape, Run: runOneHot},
		{Type: "Trilu", Since: 14, Shape: triluShape, Run: runTrilu, InPlace: []int{0}},
	}
}

// constant is the value of the node's one attribute.
func constant(n *op.Node) (*ir.Array, error) {
	if a := n.Array("value"); a != nil {
		return a, nil
	}
	switch {
	case n.Has("value_float"):
		return ir.ArrayOf([]float32{n.Float("value_float", 0)}), nil
	case n.Has("value_floats"):
		xs := n.Floats("value_floats")
		return ir.ArrayOf(xs, int64(len(xs))), nil
	case n.Has("value_int"):
		return ir.ArrayOf([]int64{n.Int("value_int", 0)}), nil
	case n.Has("value_ints"):
		xs := n.Ints("value_ints")
		return ir.ArrayOf(xs, int64(len(xs))), nil
	case n.Has("value_string"):
		return ir.TextOf([]string{n.Text("value_string", "")}), nil
	case n.Has("value_strings"):
		xs := n.Texts("value_strings")
		return ir.TextOf(xs, int64(len(xs))), nil
	}
	return nil, errors.New("no value attribute")
}

func constantShape(n *op.Node, _ []*ir.Array) ([]ir.Spec, error) {
	a, err := constant(n)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{a.Spec()}, nil
}

func runConstant(c *op.Call) error {
	a, err := constant(c.Node)
	if err != nil {
		return err
	}
	copyAll(c.Pool, c.Out[0], a)
	return nil
}

// filling is the element that ConstantOfShape repeats: a float 0 by default.
func filling(n *op.Node) (*ir.Array, error) {
	a := n.Array("value")
	if a == nil {
		return ir.ArrayOf([]float32{0}, 1), nil
	}
	if a.Elems() != 1 {
		return nil, fmt.Errorf("attribute value is %s, want one element", a)
	}
	return a, nil
}

func constantOfShapeShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	shape, err := nonNegative(in, 0, "input")
	if err != nil {
		return nil, err
	}
	a, err := filling(n)
	if err != nil {
		return nil, err
	}
	return op.One(a.DType, shape...)
}

func runConstantOfShape(c *op.Call) error {
	a, err := filling(c.Node)
	if err != nil {
		return err
	}
	move(c.Pool, fill{}, c.Out[0], a)
	return nil
}

func eyeLikeShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	if len(a.Shape) != 2 {
		return nil, fmt.Errorf("input is %s, want rank 2", a)
	}
	dt := ir.DType(n.Int("dtype", int64(a.DType)))
	if _, err := unit(dt); err != nil {
		return nil, err
	}
	return op.One(dt, a.Shape...)
}

// unit is the number one.
func unit(dt ir.DType) (*ir.Array, error) {
	bits, ok := map[ir.DType]uint64{
		ir.Float: 0x3f800000, ir.Double: 0x3ff0000000000000, ir.Float16: 0x3c00, ir.BFloat16: 0x3f80,
		ir.Int8: 1, ir.Int16: 1, ir.Int32: 1, ir.Int64: 1, ir.Uint8: 1, ir.Uint16: 1, ir.Uint32: 1, ir.Uint64: 1,
		ir.Bool: 1,
	}[dt]
	if !ok {
		return nil, fmt.Errorf("%s is not a numeric type", dt)
	}
	a := ir.NewArray(dt)
	for i := range a.Data {
		a.Data[i] = byte(bits >> (8 * i))
	}
	return a, nil
}

func runEyeLike(c *op.Call) error {
	dst := c.Out[0]
	one, err := unit(dst.DType)
	if err != nil {
		return err
	}
	clear(dst.Data)
	rows, cols, k := dst.Shape[0], dst.Shape[1], c.Int("k", 0)
	if k <= -rows || k >= cols {
		return nil
	}
	row, col := max(0, -k), max(0, k)
	// A diagonal is a stride of one row and one column.
	s := &stridedTransfer{dst: int(row*cols + col)}
	s.add(min(rows-row, cols-col), cols+1, 0)
	move(c.Pool, s, dst, one)
	return nil
}
