package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

func checkNorm(n *op.Node, w *ir.Array) error {
	limit := n.Float("max_norm", 0)
	if !(limit >= 0) {
		return fmt.Errorf("attribute max_norm is %v, want 0 or more", limit)
	}
	if limit == 0 {
		return nil
	}
	axis, err := op.Axis(n.Int("norm_axis", 0), len(w.Shape))
	if err != nil {
		return err
	}
	before := int(op.Product(w.Shape[:axis]))
	if blocks := n.Int("norm_blocks", 1); blocks < 1 || int64(before)%blocks != 0 {
		return fmt.Errorf("attribute norm_blocks is %d, want a divisor of %d, the size of the axes before norm_axis",
			blocks, before)
	}
	return nil
}

// units returns the number of blocks with units of their own, and the lanes of one block, in which each index along
// norm_axis is one unit.
func units(n *op.Node, w *ir.Array) (int, lanes) {
	axis, err := op.Axis(n.Int("norm_axis", 0), len(w.Shape))
	if err != nil {
		return 0, lanes{}
	}
	blocks, l := max(1, int(n.Int("norm_blocks", 1))), lanesOf(w.Shape, axis)
	l.outer /= blocks
	return blocks, l
}

// unitBlock is the number of neighbouring units per worker, whose weights share cache lines if the axis is the last.
const unitBlock = 64

// limitNorms scales the weights of units with a norm above max_norm to that norm.
func limitNorms(c *op.Call) {
	limit := float64(c.Float("max_norm", 0))
	if limit == 0 {
		return
	}
	w := ir.View[float32](c.In[0])
	blocks, l := units(c.Node, c.In[0])
	factors, size := block.Words[float64](c.Work, l.n), l.rows()*l.n
	for b := range blocks {
		limitBlock(c, w[b*size:][:size], l, factors, limit)
	}
}

// limitBlock is limitNorms of the units of one block.
func limitBlock(c *op.Call, w []float32, l lanes, factors []float64, limit float64) {
	c.Pool.Rows(l.n, unitBlock, func(from, to int) {
		clear(factors[from:to])
		l.runs(from, to, func(unit, from, to int) {
			for _, v := range w[from:to] {
				factors[unit] += float64(float64(v) * float64(v))
			}
		})
		for unit := from; unit < to; unit++ {
			// Infinite for a unit of zeros, which stays as it is.
			factors[unit] = min(1, limit/math.Sqrt(factors[unit]))
		}
		l.runs(from, to, func(unit, from, to int) {
			if f := factors[unit]; f < 1 {
				kernel.MulScalar(w[from:to], w[from:to], float32(f))
			}
		})
	})
}
