package train

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
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
	_, err := op.Axis(n.Int("norm_axis", 0), len(w.Shape))
	return err
}

// units are the lanes of which each index along norm_axis is one unit's weights.
func units(n *op.Node, w *ir.Array) lanes {
	axis, err := op.Axis(n.Int("norm_axis", 0), len(w.Shape))
	if err != nil {
		return lanes{}
	}
	return lanesOf(w.Shape, axis)
}

// unitBlock is how many units are one worker's: neighbours, whose weights share cache lines where the
// axis is the last.
const unitBlock = 64

// limitNorms scales the weights of units that are longer than max_norm down to it.
func limitNorms(c *op.Call) {
	limit := float64(c.Float("max_norm", 0))
	if limit == 0 {
		return
	}
	w, l := ir.View[float32](c.In[0]), units(c.Node, c.In[0])
	factors := block.Words[float64](c.Work, l.n)
	c.Pool.Rows(l.n, unitBlock, func(from, to int) {
		clear(factors[from:to])
		l.each(from, to, func(unit, at int) { factors[unit] += float64(float64(w[at]) * float64(w[at])) })
		for unit := from; unit < to; unit++ {
			factors[unit] = min(1, limit/math.Sqrt(factors[unit]))
		}
		l.each(from, to, func(unit, at int) {
			if factors[unit] < 1 {
				w[at] = float32(float64(w[at]) * factors[unit])
			}
		})
	})
}

// each calls f for all elements of the indices from to to-1, in the order of memory.
func (l lanes) each(from, to int, f func(index, at int)) {
	for o := range l.outer {
		for k := from; k < to; k++ {
			at := (o*l.n + k) * l.inner
			for i := range l.inner {
				f(k, at+i)
			}
		}
	}
}
