package linear

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A kvCache is keys, or values, of past tokens followed by new ones, as [batch, heads, tokens, size].
type kvCache struct {
	batch, heads, tokens, size int
	past, new                  int // tokens of the past tensor, and new ones
}

func (c kvCache) spec(dt ir.DType) ir.Spec {
	return ir.Spec{DType: dt, Shape: []int64{int64(c.batch), int64(c.heads), int64(c.tokens), int64(c.size)}}
}

func (c kvCache) layout() headLayout { return split(c.heads, c.tokens, c.size) }

// fill writes the first before(b) tokens of past of each batch, followed by the new ones, which have the layout at. The
// rest is zero.
func (c kvCache) fill(p *op.Pool, dst, past, fresh []float32, at headLayout, before func(batch int) int) {
	p.Rows(c.batch*c.heads, 1, func(from, to int) {
		for i := from; i < to; i++ {
			rows := dst[i*c.tokens*c.size:][:c.tokens*c.size]
			n := before(i/c.heads) * c.size
			copy(rows[:n], past[min(i*c.past*c.size, len(past)):])
			rows = rows[n:]
			for t := range c.new {
				copy(rows[t*c.size:][:c.size], fresh[at.at(i/c.heads, i%c.heads)+t*at.token:])
			}
			// Tokens that a longer sequence of the batch has, or that the caller has reserved.
			clear(rows[c.new*c.size:])
		}
	})
}

// all is a kvCache that holds past tokens only.
func (c kvCache) all(int) int { return c.past }
