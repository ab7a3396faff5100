package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

// scalers are ImageScaler, an experimental operator that ONNX dropped and old models still have:
// x·scale + bias[c] on images NCHW.
func scalers() []op.Op {
	return []op.Op{{Type: "ImageScaler", Since: 1, Shape: scalerShape, Run: runScaler, InPlace: []int{0}}}
}

func scalerShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) != 4 || x.DType != ir.Float {
		return nil, fmt.Errorf("input is %s, not float of rank 4", x)
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
