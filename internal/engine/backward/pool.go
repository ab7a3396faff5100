package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// pools are
//
//	Y, I = MaxPoolKeep(X)
//	dX = MaxPoolGrad(dY, I)
//	dX = AveragePoolGrad(dY)
//
// with the attributes of MaxPool and AveragePool. I holds for each element of Y the index of the maximum within its window,
// in the smallest sufficient type. Attribute shape of the gradients is X's.
func pools() []op.Op {
	return []op.Op{
		{Type: "MaxPoolKeep", Shape: keepShape, Run: op.FloatOrDouble(maxPoolKeep[float32], maxPoolKeep[float64])},
		{Type: "MaxPoolGrad", Shape: maxGradShape, Run: op.FloatOrDouble(maxPoolGrad[float32], maxPoolGrad[float64])},
		{Type: "AveragePoolGrad", Shape: averageGradShape, Run: op.FloatOrDouble(averagePoolGrad[float32], averagePoolGrad[float64])},
	}
}

// PlaceType returns the type of the indices of MaxPoolKeep in windows of this number of elements.
func PlaceType(taken int) ir.DType {
	switch {
	case taken <= 1<<8:
		return ir.Uint8
	case taken <= 1<<16:
		return ir.Uint16
	}
	return ir.Int32
}

func keepShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if err := images(in, "X"); err != nil {
		return nil, err
	}
	w, err := conv.WindowsOf(n, in[0].Shape[2:])
	if err != nil {
		return nil, err
	}
	shape := slices.Concat(in[0].Shape[:2], w.Lengths())
	y := ir.Spec{DType: in[0].DType, Shape: shape}
	return []ir.Spec{y, {DType: PlaceType(w.KernelSize()), Shape: shape}}, y.Valid()
}

func maxPoolKeep[T number](c *op.Call) error {
	w, err := conv.WindowsOf(c.Node, c.In[0].Shape[2:])
	if err != nil {
		return err
	}
	y := c.Out[0]
	if y == nil { // only the indices are used
		y = ir.NewArray(c.In[0].DType, c.Out[1].Shape...)
	}
	switch PlaceType(w.KernelSize()) {
	case ir.Uint8:
		keep[T, uint8](w, c, y)
	case ir.Uint16:
		keep[T, uint16](w, c, y)
	default:
		keep[T, int32](w, c, y)
	}
	return nil
}

func keep[T number, P conv.Argmax](w conv.Windows, c *op.Call, y *ir.Array) {
	var places []P
	if len(c.Out) > 1 && c.Out[1] != nil {
		places = ir.View[P](c.Out[1])
	}
	conv.MaxPoolArgmax(w, c.Pool, ir.View[T](y), places, ir.View[T](c.In[0]))
}

// inputShape is attribute shape, and the windows over it, whose outputs dY has.
func inputShape(n *op.Node, in []*ir.Array) ([]int64, conv.Windows, error) {
	if err := images(in, "dY"); err != nil {
		return nil, conv.Windows{}, err
	}
	shape, dy := n.Ints("shape"), in[0].Shape
	if err := (ir.Spec{DType: in[0].DType, Shape: shape}).Valid(); err != nil {
		return nil, conv.Windows{}, fmt.Errorf("attribute shape: %w", err)
	}
	if len(shape) != len(dy) || !slices.Equal(shape[:2], dy[:2]) {
		return nil, conv.Windows{}, fmt.Errorf("attribute shape is %v, which does not match dY, %s", shape, in[0])
	}
	w, err := conv.WindowsOf(n, shape[2:])
	if err != nil {
		return nil, w, err
	}
	if !slices.Equal(w.Lengths(), dy[2:]) {
		return nil, w, fmt.Errorf("input dY is %s, want spatial lengths %v", in[0], w.Lengths())
	}
	return shape, w, nil
}

func averageGradShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	shape, _, err := inputShape(n, in)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: in[0].DType, Shape: shape}}, nil
}

func maxGradShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	shape, w, err := inputShape(n, in)
	if err != nil {
		return nil, err
	}
	places, err := op.Arg(in, 1, "I")
	if err != nil {
		return nil, err
	}
	if want := PlaceType(w.KernelSize()); places.Kind != ir.Dense || places.DType != want || !slices.Equal(places.Shape, in[0].Shape) {
		return nil, fmt.Errorf("input I is %s, want %s of the shape of dY, %s", places, want, in[0])
	}
	return []ir.Spec{{DType: in[0].DType, Shape: shape}}, nil
}

// windows are those over an input of attribute shape; for any batch size.
func windows(c *op.Call) (conv.Windows, error) { return conv.WindowsOf(c.Node, c.Ints("shape")[2:]) }

func maxPoolGrad[T number](c *op.Call) error {
	w, err := windows(c)
	if err != nil {
		return err
	}
	dx, dy := ir.View[T](c.Out[0]), ir.View[T](c.In[0])
	switch c.In[1].DType {
	case ir.Uint8:
		conv.MaxGradient(w, c.Pool, dx, dy, ir.View[uint8](c.In[1]))
	case ir.Uint16:
		conv.MaxGradient(w, c.Pool, dx, dy, ir.View[uint16](c.In[1]))
	default:
		conv.MaxGradient(w, c.Pool, dx, dy, ir.View[int32](c.In[1]))
	}
	return nil
}

func averagePoolGrad[T number](c *op.Call) error {
	w, err := windows(c)
	if err != nil {
		return err
	}
	conv.AverageGradient(w, c.Pool, ir.View[T](c.Out[0]), ir.View[T](c.In[0]), c.Bool("count_include_pad", false))
	return nil
}
