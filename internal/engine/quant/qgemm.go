package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// qGemmShape is QGemm's: inputs A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale, y_zero_point. Without
// y_scale the result is float.
func qGemmShape(_ *op.Node, in []*ir.Array, p *product) ([]ir.Spec, error) {
	if len(in[0].Shape) != 2 || len(in[3].Shape) != 2 {
		return nil, fmt.Errorf("inputs A and B are %s and %s, want matrices", in[0], in[3])
	}
	if err := requireInputs(in, input{1, "a_scale"}, input{4, "b_scale"}); err != nil {
		return nil, err
	}
	if err := p.checkScales(in[1], in[4], op.Opt(in, 7)); err != nil {
		return nil, err
	}
	if bias := op.Opt(in, 6); bias != nil && (bias.DType != ir.Int32 || !spreads(bias.Shape, p.shape)) {
		return nil, fmt.Errorf("input C is %s, want int32 that broadcasts to %v", bias, p.shape)
	}
	s := ir.Spec{DType: ir.Float, Shape: p.shape}
	if op.Opt(in, 7) != nil {
		zero, err := op.Arg(in, 8, "y_zero_point")
		if err != nil {
			return nil, err
		}
		if !isByte(zero.DType) || zero.Elems() != 1 {
			return nil, fmt.Errorf("input y_zero_point is %s, want one int8 or uint8", zero)
		}
		s.DType = zero.DType
	}
	return []ir.Spec{s}, s.Valid()
}

// spreads reports whether a shape broadcasts to that of a matrix.
func spreads(shape, matrix []int64) bool {
	both, err := op.BroadcastShapes(shape, matrix)
	return err == nil && len(both) == 2 && both[0] == matrix[0] && both[1] == matrix[1]
}

func multiplyGemm(c *op.Call, p *product) error {
	s, err := p.scales(c.In[1], c.In[4], c.Opt(7), c.Float("alpha", 1))
	if err != nil {
		return err
	}
	if c.Opt(7) == nil {
		return p.multiplyStored(c, nil, p.plus(c.Opt(6), p.toFloat(c.Out[0], s, nil, nil)))
	}
	zero, err := integers(c.In[8])
	if err != nil {
		return err
	}
	return p.multiplyStored(c, nil, p.plus(c.Opt(6), p.quantizeTo(c.Out[0], s, zero[0])))
}

// plus adds C to the sums first.
func (p *product) plus(bias *ir.Array, finish finisher) finisher {
	if bias == nil {
		return finish
	}
	add := ir.View[int32](bias)
	row, col := 0, 0 // strides, 0 for axes of length 1
	if r := len(bias.Shape); r > 0 && bias.Shape[r-1] > 1 {
		col = 1
	}
	if len(bias.Shape) == 2 && bias.Shape[0] > 1 {
		row = int(bias.Shape[1])
	}
	return func(i, r, c int, sums []int32) {
		for j := range sums {
			sums[j] += add[r*row+(c+j)*col]
		}
		finish(i, r, c, sums)
	}
}

// quantizeTo writes sums·scale, quantized.
func (p *product) quantizeTo(y *ir.Array, s *scales, zero int32) finisher {
	levels := rangeOfType(y.DType)
	return func(i, row, col int, sums []int32) {
		requantize(y.Data[(i*p.M+row)*p.N+col:][:len(sums)], sums, s.row(row)[col:], zero, levels)
	}
}
