package elementwise

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// unpackBitsOps are
//
//	Y = UnpackBits(X)
//
// the integers of attribute bits, 1, 2 or 4, of the bytes X, the lowest bits first, as int32. One node has the result
// of Cast, Reshape, Div, Mod and Reshape, which unpack bytes in models that support older opsets than that of
// BitwiseAnd.
func unpackBitsOps() []op.Op {
	return []op.Op{{Domain: "mcompress", Type: "UnpackBits", Since: 1, Shape: unpackBitsShape, Run: unpackBits}}
}

func unpackBitsShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Of(ir.Uint8).Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	bits := n.Int("bits", 0)
	if bits != 1 && bits != 2 && bits != 4 || len(x.Shape) != 1 {
		return nil, fmt.Errorf("input X is %s with %d bits, want a vector and 1, 2 or 4", x, bits)
	}
	return []ir.Spec{{DType: ir.Int32, Shape: []int64{x.Shape[0] * 8 / bits}}}, nil
}

func unpackBits(c *op.Call) error {
	x, y, bits := c.In[0].Data, ir.View[int32](c.Out[0]), int(c.Int("bits", 0))
	each := 8 / bits
	var table [256][8]int32
	for b := range table {
		for i := range each {
			table[b][i] = int32(b >> (i * bits) & (1<<bits - 1))
		}
	}
	c.Pool.Rows(len(x), block.Grain, func(from, to int) {
		for i, b := range x[from:to] {
			copy(y[(from+i)*each:][:each], table[b][:])
		}
	})
	return nil
}
