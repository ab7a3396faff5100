package elementwise

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/quant"
	"github.com/mcompress/mcompress/ir"
)

// packCast converts elements of a table from Float16 to Float, and integers.
func packCast(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	l, ok := packed[0].(*op.Lookup)
	switch {
	case !ok:
		return quant.PackCast(n, in, packed)
	case n.Int("to", 0) != int64(ir.Float):
		return nil
	}
	return l.As(ir.Float)
}

// packMul multiplies packed elements by their scales: blocks of elements of a table, one for each index of all axes but the last, and
// sparse elements, one for each index of the first axis.
func packMul(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	if s, ok := packed[0].(*op.Sparse); ok && packed[1] == nil {
		return scaledSparse(s, in[0].Shape, in[1])
	}
	for i := range in {
		x, scale, last := in[i], in[1-i], len(in[i].Shape)-1
		values, ok := packed[i].(*op.Lookup)
		if !ok || x.DType != ir.Float || last < 0 || !slices.Equal(append(slices.Clone(x.Shape[:last]), 1), scale.Shape) {
			continue
		}
		s := &op.Scaled{Values: values, Block: int(x.Shape[last])}
		switch l, ok := packed[1-i].(*op.Lookup); {
		case ok:
			s.Scales = l
		case packed[1-i] != nil:
			return nil
		case op.Known(scale):
			s.Floats = ir.View[float32](scale)
		default:
			s.Floats = make([]float32, scale.Elems())
		}
		return s
	}
	return quant.PackMul(n, in, packed)
}

// scaledSparse is sparse elements of this shape times scales, or nil if there is not one for each index of the first axis.
func scaledSparse(s *op.Sparse, shape []int64, scales *ir.Array) op.Packed {
	n := scales.Elems()
	if len(scales.Shape) != len(shape) || len(shape) == 0 || n == 0 || n != shape[0] || scales.Shape[0] != n || scales.DType != ir.Float {
		return nil
	}
	if !op.Known(scales) {
		return s
	}
	return s.Scaled(ir.View[float32](scales), int(op.Product(shape[1:])))
}
