package quant

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// quantizedAddOps is the sum of two quantized values of the same shape that the engine's fusions create:
//
//	QuantizedAdd(A, as, az, B, bs, bz, ys, yz) =
//	  QuantizeLinear(activation(DequantizeLinear(A, as, az) + DequantizeLinear(B, bs, bz)), ys, yz)
//
// It is bit-identical to these operators; floats exist for a block at a time.
func quantizedAddOps() []op.Op {
	return []op.Op{{
		Domain: "mcompress", Type: "QuantizedAdd", Since: 1, Shape: quantizedAddShape, Run: runQuantizedAdd,
	}}
}

func quantizedAddShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := triple(in, 0, "A")
	if err != nil {
		return nil, err
	}
	b, err := triple(in, 3, "B")
	if err != nil {
		return nil, err
	}
	zero, err := op.Arg(in, 7, "Y_zero_point")
	if err != nil {
		return nil, err
	}
	if !slices.Equal(a.Shape, b.Shape) || !isByte(zero.DType) {
		return nil, fmt.Errorf("inputs A, B and Y_zero_point are %s, %s and %s, want equal shapes and an int8 "+
			"or uint8", a, b, zero)
	}
	if _, err := activationOf(n); err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: zero.DType, Shape: a.Shape}}, checkParams(in, 6, "Y", zero.DType)
}

func runQuantizedAdd(c *op.Call) error {
	var ps [3]params
	for i, dt := range []ir.DType{c.In[0].DType, c.In[3].DType, c.Out[0].DType} {
		var err error
		if ps[i], err = paramsAt(c.In, []int{1, 4, 6}[i], dt); err != nil {
			return err
		}
	}
	activate, err := activationOf(c.Node)
	if err != nil {
		return err
	}
	a, b, y := c.In[0].Data, c.In[3].Data, c.Out[0].Data
	c.Pool.Rows(len(y), piece, func(from, to int) {
		var left, right [1024]float32
		for at := from; at < to; at += len(left) {
			n := min(len(left), to-at)
			x, z := left[:n], right[:n]
			ps[0].dequantize(x, a[at:][:n])
			ps[1].dequantize(z, b[at:][:n])
			kernel.Add(x, x, z)
			if activate != nil {
				activate(x)
			}
			ps[2].quantize(y[at:][:n], x)
		}
	})
	return nil
}
