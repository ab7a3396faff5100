package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// pools are
//
//	Y, I = MaxPoolKeep(X)
//	dX = MaxPoolGrad(dY, I)
//	dX = AveragePoolGrad(dY)
//
// with the attributes of MaxPool and AveragePool. I holds for each element of Y the index of the maximum within its
// window, in the smallest sufficient type. Attribute shape of the gradients is X's. X, Y, dX and dY may be Float16,
// with the attributes of package half.
func pools() []op.Op {
	return []op.Op{
		{Type: "MaxPoolKeep", Shape: keepShape, Work: poolWork(keepShape),
			Run: op.FloatOrDouble(maxPoolKeep[float32], maxPoolKeep[float64])},
		{Type: "MaxPoolGrad", Shape: maxGradShape, Work: poolWork(maxGradShape),
			Run: op.FloatOrDouble(maxPoolGrad[float32], maxPoolGrad[float64])},
		{
			Type: "AveragePoolGrad", Shape: averageGradShape, Work: poolWork(averageGradShape),
			Run: op.FloatOrDouble(averagePoolGrad[float32], averagePoolGrad[float64]),
		},
	}
}

// poolWork is the scratch of a pool with this function for its outputs.
func poolWork(shape func(*op.Node, []*ir.Array) ([]ir.Spec, error)) func(*op.Node, []*ir.Array, int) int64 {
	return func(n *op.Node, in []*ir.Array, workers int) int64 {
		out, err := shape(n, in)
		if err != nil {
			return 0
		}
		return eachPlaneWork(n, in[0], out[0].Shape, workers)
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
	in = widenHalf(in, 0)
	if err := images(in, "X"); err != nil {
		return nil, err
	}
	w, err := conv.WindowsOf(n, in[0].Shape[2:])
	if err != nil {
		return nil, err
	}
	shape := slices.Concat(in[0].Shape[:2], w.Lengths())
	y := ir.Spec{DType: in[0].DType, Shape: shape}
	if err := y.Valid(); err != nil {
		return nil, err
	}
	return half.Stored(n, []ir.Spec{y, {DType: PlaceType(w.KernelSize()), Shape: shape}})
}

func maxPoolKeep[T number](c *op.Call) error {
	w, err := conv.WindowsOf(c.Node, c.In[0].Shape[2:])
	if err != nil {
		return err
	}
	switch PlaceType(w.KernelSize()) {
	case ir.Uint8:
		keep[T, uint8](w, c)
	case ir.Uint16:
		keep[T, uint16](w, c)
	default:
		keep[T, int32](w, c)
	}
	return nil
}

func keep[T number, P conv.Argmax](w conv.Windows, c *op.Call) {
	pool, area := conv.ArgmaxChannel[T, P](w), int(op.Product(w.Lengths()))
	places := op.Opt(c.Out, 1)
	eachPlane(c, planes{size: area, channels: int(c.In[0].Shape[1])}, func(i int, y, x []T) {
		var to []P
		if places != nil {
			to = ir.View[P](places)[i*area:][:area]
		}
		pool(y, to, x)
	})
}

// inputShape is attribute shape, and the windows over it, whose outputs dY has.
func inputShape(n *op.Node, in []*ir.Array) ([]int64, conv.Windows, error) {
	in = widenHalf(in, 0)
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
	return half.Stored(n, []ir.Spec{{DType: widenHalf(in, 0)[0].DType, Shape: shape}})
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
	if want := PlaceType(w.KernelSize()); places.Kind != ir.Dense || places.DType != want ||
		!slices.Equal(places.Shape, in[0].Shape) {
		return nil, fmt.Errorf("input I is %s, want %s of the shape of dY, %s", places, want, in[0])
	}
	return half.Stored(n, []ir.Spec{{DType: widenHalf(in, 0)[0].DType, Shape: shape}})
}

// windows are those over an input of attribute shape; for any batch size.
func windows(c *op.Call) (conv.Windows, error) { return conv.WindowsOf(c.Node, c.Ints("shape")[2:]) }

func maxPoolGrad[T number](c *op.Call) error {
	w, err := windows(c)
	if err != nil {
		return err
	}
	switch c.In[1].DType {
	case ir.Uint8:
		scatterMaxima[T, uint8](w, c)
	case ir.Uint16:
		scatterMaxima[T, uint16](w, c)
	default:
		scatterMaxima[T, int32](w, c)
	}
	return nil
}

func scatterMaxima[T number, P conv.Argmax](w conv.Windows, c *op.Call) {
	gradient, places := conv.MaxGradientChannel[T, P](w), ir.View[P](c.In[1])
	eachPlane(c, planesOf(c.Out[0]), func(i int, dx, dy []T) { gradient(dx, dy, places[i*len(dy):][:len(dy)]) })
}

func averagePoolGrad[T number](c *op.Call) error {
	w, err := windows(c)
	if err != nil {
		return err
	}
	gradient := conv.AverageGradientChannel[T](w, c.Bool("count_include_pad", false))
	eachPlane(c, planesOf(c.Out[0]), func(_ int, dx, dy []T) { gradient(dx, dy) })
	return nil
}
