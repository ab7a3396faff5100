package reduce

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// softColumns computes Softmax or LogSoftmax of float32 along an axis that is not the last one, many adjacent lanes at
// once: four times as fast as lane by lane.
func softColumns(c *op.Call, l lanes) {
	x, y := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0])
	perRow := (l.inner + colBlock - 1) / colBlock
	log := c.ID.Type == "LogSoftmax"
	block.Parallel(c, l.outer*perRow, l.grain(8*colBlock), softBytes, func(s block.Scratch, from, to int) {
		for i := from; i < to; i++ {
			first := i % perRow * colBlock
			at := i/perRow*l.n*l.inner + first
			v := columns{at, min(colBlock, l.inner-first), l.n, l.inner}
			// A copy, so that each block of columns takes the same memory.
			spare := s
			if log {
				v.logSoftmax(y, x, &spare)
			} else {
				v.softmax(y, x, &spare)
			}
		}
	})
}

// softBytes is the size of maxima, sums, and a row of a block of columns.
const softBytes = (4 + 8 + 4) * colBlock

// columns are count adjacent lanes of n elements, step apart, the first one at offset at.
type columns struct{ at, count, n, step int }

func (v columns) row(x []float32, i int) []float32 { return x[v.at+i*v.step:][:v.count] }

func (v columns) greatest(x []float32, s *block.Scratch) []float32 {
	top := block.Take[float32](s, v.count)
	copy(top, v.row(x, 0))
	for i := 1; i < v.n; i++ {
		kernel.Max(top, top, v.row(x, i))
	}
	return top
}

func (v columns) softmax(y, x []float32, s *block.Scratch) {
	top, sum := v.greatest(x, s), block.Take[float64](s, v.count)
	clear(sum)
	for i := range v.n {
		e := v.row(y, i)
		kernel.Sub(e, v.row(x, i), top)
		kernel.Exp(e, e)
		addTo(sum, e)
	}
	// One division for each column instead of each element.
	for i, v := range sum {
		top[i] = float32(1 / v)
	}
	for i := range v.n {
		kernel.Mul(v.row(y, i), v.row(y, i), top)
	}
}

func (v columns) logSoftmax(y, x []float32, s *block.Scratch) {
	top, sum, e := v.greatest(x, s), block.Take[float64](s, v.count), block.Take[float32](s, v.count)
	clear(sum)
	for i := range v.n {
		kernel.Sub(e, v.row(x, i), top)
		kernel.Exp(e, e)
		addTo(sum, e)
	}
	for i, v := range sum {
		e[i] = float32(math.Log(v))
	}
	for i := range v.n {
		kernel.Sub(v.row(y, i), v.row(x, i), top)
		kernel.Sub(v.row(y, i), v.row(y, i), e)
	}
}

func addTo(sum []float64, x []float32) {
	sum = sum[:len(x)]
	for i, v := range x {
		sum[i] += float64(v)
	}
}
