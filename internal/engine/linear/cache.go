package linear

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A cache is keys, or values, of tokens that came before, and of fresh ones behind them, as
// [batch, heads, tokens, size].
type cache struct {
	batch, heads, tokens, size int
	past, fresh                int // tokens of the past tensor, and new ones
}

func (c cache) spec(dt ir.DType) ir.Spec {
	return ir.Spec{DType: dt, Shape: []int64{int64(c.batch), int64(c.heads), int64(c.tokens), int64(c.size)}}
}

func (c cache) stack() stack { return split(c.heads, c.tokens, c.size) }

// fill writes the first tokens of past, so many as before says of each batch, and the fresh ones, which lie
// as at says. What is left is zero.
func (c cache) fill(p *op.Pool, dst, past, fresh []float32, at stack, before func(batch int) int) {
	p.Rows(c.batch*c.heads, 1, func(from, to int) {
		for i := from; i < to; i++ {
			rows := dst[i*c.tokens*c.size:][:c.tokens*c.size]
			n := before(i/c.heads) * c.size
			copy(rows[:n], past[min(i*c.past*c.size, len(past)):])
			rows = rows[n:]
			for t := range c.fresh {
				copy(rows[t*c.size:][:c.size], fresh[at.at(i/c.heads, i%c.heads)+t*at.token:])
			}
			clear(rows[c.fresh*c.size:])
		}
	})
}

// all is the past of a cache that holds nothing else.
func (c cache) all(int) int { return c.past }
