package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// scalers are experimental operators on NCHW images that ONNX dropped and old models still use: ImageScaler is x·scale
// + bias[c], Affine is alpha·x + beta, Crop removes borders.
func scalers() []op.Op {
	return []op.Op{
		{Type: "ImageScaler", Since: 1, Shape: scalerShape, Run: runScaler, InPlace: []int{0}},
		{Type: "Affine", Since: 1, Shape: shiftShape, Run: runShift, InPlace: []int{0}},
		{Type: "Crop", Since: 1, Shape: cropShape, Run: runCrop},
	}
}

func scalerShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) != 4 || x.DType != ir.Float {
		return nil, fmt.Errorf("input is %s, want float of rank 4", x)
	}
	if bias := n.Floats("bias"); bias != nil && int64(len(bias)) != x.Shape[1] {
		return nil, fmt.Errorf("bias has %d numbers for %d channels", len(bias), x.Shape[1])
	}
	return []ir.Spec{x.Spec()}, nil
}

func runScaler(c *op.Call) error {
	x, y := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0])
	channels, area := int(c.In[0].Shape[1]), int(c.In[0].Shape[2]*c.In[0].Shape[3])
	scale, bias := c.Float("scale", 1), c.Floats("bias")
	c.Pool.For(int(c.In[0].Shape[0])*channels, func(i int) {
		shift := float32(0)
		if bias != nil {
			shift = bias[i%channels]
		}
		kernel.ScaleShift(y[i*area:][:area], x[i*area:][:area], scale, shift)
	})
	return nil
}

func shiftShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if x.DType != ir.Float {
		return nil, fmt.Errorf("input X is %s, want float", x)
	}
	return []ir.Spec{x.Spec()}, nil
}

func runShift(c *op.Call) error {
	x, y := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0])
	alpha, beta := c.Float("alpha", 1), c.Float("beta", 0)
	c.Pool.Rows(len(x), 1<<14, func(from, to int) { kernel.ScaleShift(y[from:to], x[from:to], alpha, beta) })
	return nil
}

// cropped is the start and the size of the result of Crop: border is left, top, right, bottom; scale, if given, is the
// remaining height and width.
func cropped(n *op.Node, x *ir.Array) (top, left, height, width int64, err error) {
	border, scale := n.Ints("border"), n.Ints("scale")
	if x == nil || len(x.Shape) != 4 || x.DType != ir.Float || len(border) != 4 {
		return 0, 0, 0, 0, fmt.Errorf("input is %s with border %v, want float of rank 4 and 4 numbers", x, border)
	}
	left, top = border[0], border[1]
	height, width = x.Shape[2]-top-border[3], x.Shape[3]-left-border[2]
	if len(scale) == 2 {
		height, width = scale[0], scale[1]
	}
	if left < 0 || top < 0 || height < 0 || width < 0 || top > x.Shape[2]-height || left > x.Shape[3]-width {
		return 0, 0, 0, 0, fmt.Errorf("border %v and scale %v do not match %s", border, scale, x)
	}
	return top, left, height, width, nil
}

func cropShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x := op.Opt(in, 0)
	_, _, height, width, err := cropped(n, x)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: ir.Float, Shape: []int64{x.Shape[0], x.Shape[1], height, width}}}, nil
}

func runCrop(c *op.Call) error {
	top, left, height, width, err := cropped(c.Node, c.In[0])
	if err != nil {
		return err
	}
	x, y := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0])
	h, w := c.In[0].Shape[2], c.In[0].Shape[3]
	for plane := range c.In[0].Shape[0] * c.In[0].Shape[1] {
		for i := range height {
			copy(y[(plane*height+i)*width:][:width], x[(plane*h+top+i)*w+left:])
		}
	}
	return nil
}
