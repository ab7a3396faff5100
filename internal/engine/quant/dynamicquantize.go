package quant

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func dynamicShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Arg(in, 0, "x")
	if err != nil {
		return nil, err
	}
	if x.Kind != ir.Dense || x.DType != ir.Float {
		return nil, fmt.Errorf("input x is %s, want float", x)
	}
	return []ir.Spec{{DType: ir.Uint8, Shape: x.Shape}, {DType: ir.Float}, {DType: ir.Uint8}}, nil
}

// dynamic computes scale and zero point from the range of all elements.
func dynamic(c *op.Call) error {
	x := ir.View[float32](c.In[0])
	scale, zero := rangeOf(c.Pool, x)
	if y := c.Out[0]; y != nil {
		quantizeAll(c.Pool, y.Data, x, scale, zero)
	}
	if len(c.Out) > 1 && c.Out[1] != nil {
		ir.View[float32](c.Out[1])[0] = scale
	}
	if len(c.Out) > 2 && c.Out[2] != nil {
		c.Out[2].Data[0] = zero
	}
	return nil
}

// piece is the number of elements per task.
const piece = 1 << 14

// rangeOf computes the scale and zero point of DynamicQuantizeLinear.
func rangeOf(p *op.Pool, x []float32) (scale float32, zero uint8) {
	if len(x) == 0 {
		return kernel.DynamicScale(0, 0)
	}
	n := (len(x) + piece - 1) / piece
	los, his := make([]float32, n), make([]float32, n)
	p.For(n, func(i int) {
		los[i], his[i] = kernel.MinMax(x[i*piece : min((i+1)*piece, len(x))])
	})
	lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
	for i := range n {
		lo, hi = min(lo, los[i]), max(hi, his[i])
	}
	return kernel.DynamicScale(lo, hi)
}

func quantizeAll(p *op.Pool, dst []byte, x []float32, scale float32, zero uint8) {
	p.For((len(x)+piece-1)/piece, func(i int) {
		from, to := i*piece, min((i+1)*piece, len(x))
		kernel.Quantize(dst[from:to], x[from:to], scale, int32(zero), kernel.IntRange{Lo: 0, Hi: 255})
	})
}
