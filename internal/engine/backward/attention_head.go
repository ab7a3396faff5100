package backward

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A block of queries is large enough that packing keys and values costs little compared with the products, and its scores stay in the
// cache unless there are very many keys.
const (
	fewQueries, manyQueries = 48, 240
	cachedScores            = 1 << 16
	queryStep               = 12 // rows that kernels multiply at once
)

func (p *attention) block() int {
	rows := cachedScores / max(p.keys, 1) / queryStep * queryStep
	return min(max(rows, fewQueries), manyQueries, max(p.queries, 1))
}

// parallelHeads reports whether workers compute different heads; if there are too few heads, they compute parts of the products of one
// head. The results are bit-identical.
func (p *attention) parallelHeads(workers int) bool { return p.heads >= workers }

// attentionWork is the scratch of each head in progress: blocks of scores, and buffers for products.
func attentionWork(blocks int) func(*op.Node, []*ir.Array, int) int64 {
	return func(n *op.Node, in []*ir.Array, workers int) int64 {
		p, err := attentionOf(n, in)
		if err != nil {
			return 0
		}
		if slots := workers; p.parallelHeads(workers) {
			return int64(slots) * p.slot(in[0].DType, blocks, 1)
		}
		return p.slot(in[0].DType, blocks, workers)
	}
}

// slot is the bytes per head.
func (p *attention) slot(dt ir.DType, blocks, workers int) int64 {
	return int64(blocks)*p.scoreBytes(dt) + p.productBytes(dt, workers)
}

func (p *attention) scoreBytes(dt ir.DType) int64 {
	return (int64(p.block())*int64(p.keys)*dt.Bits()/8 + 63) / 64 * 64
}

func (p *attention) productBytes(dt ir.DType, workers int) int64 {
	if dt == ir.Double {
		return 0
	}
	most := int64(0)
	for _, rows := range []int{p.block(), p.queries % p.block()} { // fewer rows may be cut into larger tiles
		for _, s := range []gemm.Shape{
			{M: rows, N: p.keys, K: p.size}, {M: rows, N: p.value, K: p.keys}, {M: rows, N: p.keys, K: p.value},
			{M: rows, N: p.size, K: p.keys}, {M: p.keys, N: p.size, K: rows}, {M: p.keys, N: p.value, K: rows},
		} {
			most = max(most, gemm.FloatWork(s, 1, workers, false))
		}
	}
	return (most + 63) / 64 * 64
}

// A head is one matrix of each operand in progress.
type head[T number] struct {
	*attention
	index   int
	scale   T
	pool    gemm.Pool
	scores  [][]T // blocks
	product []byte
}

// single is the pool of one worker.
type alone struct{}

func (alone) Workers() int { return 1 }

func (alone) For(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// each calls f for every head, with scratch of these blocks.
func each[T number](c *op.Call, p *attention, blocks int, f func(h *head[T])) {
	dt, scale := c.In[0].DType, T(c.Float("scale", 1))
	one := func(i, slot int, pool gemm.Pool) {
		size := p.slot(dt, blocks, pool.Workers())
		work := c.Work[int64(slot)*size:][:size]
		h := &head[T]{attention: p, index: i, scale: scale, pool: pool}
		for range blocks {
			h.scores = append(h.scores, kernel.Words[T](work[:p.scoreBytes(dt)]))
			work = work[p.scoreBytes(dt):]
		}
		h.product = work
		f(h)
	}
	if p.parallelHeads(c.Pool.Workers()) {
		c.Pool.Slots(p.heads, func(i, slot int) { one(i, slot, alone{}) })
		return
	}
	for i := range p.heads {
		one(i, 0, c.Pool)
	}
}
