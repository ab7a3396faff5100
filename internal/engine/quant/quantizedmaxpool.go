package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// quantizedMaxPoolOps is MaxPool of quantized images whose channels are adjacent (NHWC), which the engine's fusions
// create if the result has the scale and zero point of the image.
func quantizedMaxPoolOps() []op.Op {
	return []op.Op{{
		Domain: "mcompress", Type: "QuantizedMaxPool", Since: 1, Shape: quantizedMaxPoolShape,
		Work: quantizedMaxPoolWork, Run: runQuantizedMaxPool,
	}}
}

func quantizedMaxPoolGeometry(n *op.Node, in []*ir.Array) (*conv.Geometry, error) {
	x, err := op.Arg(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if x.Kind != ir.Dense || !isByte(x.DType) || len(x.Shape) != 4 {
		return nil, fmt.Errorf("input X is %s, want images of int8 or uint8", x)
	}
	return conv.PoolOf(n, channelsFirst(x.Shape))
}

func quantizedMaxPoolShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	g, err := quantizedMaxPoolGeometry(n, in)
	if err != nil {
		return nil, err
	}
	s := ir.Spec{DType: in[0].DType, Shape: channelsLast(g.OutShape())}
	return []ir.Spec{s}, s.Valid()
}

func quantizedMaxPoolWork(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := quantizedMaxPoolGeometry(n, in)
	if err != nil {
		return 0
	}
	return int64(workers) * aligned(int64(conv.NewPixelBand(g).Bytes()))
}

func runQuantizedMaxPool(c *op.Call) error {
	g, err := quantizedMaxPoolGeometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	b, x, y := conv.NewPixelBand(g), c.In[0], c.Out[0].Data
	m := &kernel.MaxBytes{Channels: g.Groups, At: b.Taps(1), Signed: x.DType == ir.Int8}
	lowest := byte(rangeOfType(x.DType).Lo) // of padding
	size := aligned(int64(b.Bytes()))
	c.Pool.Slots(b.Batch*b.Bands(), func(task, slot int) {
		band, y := c.Work[int64(slot)*size:][:size], part(y, task/b.Bands(), b.OutArea()*b.Groups)
		from, to := b.Fill(band, part(x.Data, task/b.Bands(), b.InArea()*b.Groups), task%b.Bands(), lowest)
		for row := range to - from {
			x, positions, step := b.Row(band, row)
			m.Slide(part(y, from+row, positions*b.Groups), x, positions, step)
		}
	})
	return nil
}
