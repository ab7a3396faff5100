package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func halves() []op.Op {
	return []op.Op{
		{Type: "StoreHalf", Shape: halfShape, Run: storeHalf},
		{Type: "LoadHalf", Shape: wideShape, Run: loadHalf},
	}
}

// halfShape: attribute to is the storage type of x, Float16 or BFloat16.
func halfShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float)
	if err != nil {
		return nil, err
	}
	switch to := n.Int("to", int64(ir.Float16)); to {
	case int64(ir.Float16), int64(ir.BFloat16):
		return []ir.Spec{{DType: ir.DType(to), Shape: x.Shape}}, nil
	default:
		return nil, fmt.Errorf("attribute to is %d, want %d or %d", to, ir.Float16, ir.BFloat16)
	}
}

// Largest finite numbers.
const (
	maxFloat16  = 65504
	maxBFloat16 = 0x1.fep127
)

// storeHalf is Cast with saturation: an activation that is too large must not make the gradient infinite. NaN is kept.
func storeHalf(c *op.Call) error {
	x, y := ir.View[float32](c.In[0]), ir.View[uint16](c.Out[0])
	largest, narrow := float32(maxFloat16), kernel.F16FromF32
	if c.Out[0].DType == ir.BFloat16 {
		largest, narrow = maxBFloat16, kernel.BF16FromF32
	}
	c.Pool.Rows(len(x), piece, func(from, to int) {
		var buffer [updateBlock]float32
		for at := from; at < to; at += len(buffer) {
			n := min(len(buffer), to-at)
			kernel.Clip(buffer[:n], x[at:at+n], -largest, largest)
			narrow(y[at:at+n], buffer[:n])
		}
	})
	return nil
}

func wideShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := tensor(in, 0, "x", ir.Float16, ir.BFloat16)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: ir.Float, Shape: x.Shape}}, nil
}

func loadHalf(c *op.Call) error {
	x, y, widen := ir.View[uint16](c.In[0]), ir.View[float32](c.Out[0]), kernel.F32FromF16
	if c.In[0].DType == ir.BFloat16 {
		widen = kernel.F32FromBF16
	}
	c.Pool.Rows(len(x), piece, func(from, to int) { widen(y[from:to], x[from:to]) })
	return nil
}
