package elementwise

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

const microsoft = "com.microsoft"

// contribOps are ONNX Runtime's operators of this family, which its optimizer and exporters use.
func contribOps() []op.Op {
	ops := []op.Op{
		unary(microsoft, "Gelu", 1, block.Floats, func(c *op.Call) error {
			return activate(c, c.In[0], gelu,
				fastGelu)
		}),
		unary(microsoft, "QuickGelu", 1, block.Floats,
			func(c *op.Call) error { return activate(c, c.In[0], swish(quickAlpha), fastSwish(quickAlpha)) }),
	}
	for _, o := range []op.Op{
		{Type: "BiasGelu", Shape: biasShape(true),
			Run: func(c *op.Call) error { return biased(c, geluErf, kernel.Gelu) }},
		{Type: "FastGelu", Shape: biasShape(false),
			Run: func(c *op.Call) error { return biased(c, geluTanh, kernel.GeluTanh) }},
	} {
		o.Domain, o.Since, o.Work, o.InPlace = microsoft, 1, zipWork, []int{0}
		ops = append(ops, o)
	}
	return ops
}

// quickAlpha is QuickGelu's default for alpha.
const quickAlpha = 1.702

// biasShape: the bias has the length of the last axis.
func biasShape(needed bool) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		x, err := block.Floats.Tensor(in, 0, "A")
		if err != nil {
			return nil, err
		}
		bias, err := block.OptLike(x, in, 1, "B")
		if err != nil {
			return nil, err
		}
		switch {
		case bias == nil && needed:
			return nil, fmt.Errorf("input B is missing")
		case bias != nil && (len(bias.Shape) != 1 || len(x.Shape) == 0 || bias.Shape[0] != x.Shape[len(x.Shape)-1]):
			return nil, fmt.Errorf("input B is %s, want the length of the last axis of %s", bias, x)
		}
		return []ir.Spec{x.Spec()}, nil
	}
}

// biased computes f of x+bias.
func biased(c *op.Call, exact func(float64) float64, fast func(dst, x []float32)) error {
	x, bias := c.In[0], c.Opt(1)
	switch {
	case bias == nil && x.DType == ir.Double:
		return transform(c, x, block.Grain/heavier, mapped(exact))
	case bias == nil:
		return transform(c, x, block.Grain/heavier, fast)
	case x.DType == ir.Double:
		return zip(c, x, bias, binaryLoops[float64,
			float64]{vv: each(func(a, b float64) float64 { return exact(a + b) })})
	}
	return zip(c, x, bias, binaryLoops[float32, float32]{vv: func(dst, a, b []float32) {
		kernel.Add(dst, a, b)
		fast(dst, dst)
	}})
}
