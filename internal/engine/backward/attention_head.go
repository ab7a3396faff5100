package backward

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A block of queries is large enough that packing keys and values costs little compared with the products, and its
// scores stay in the cache unless there are very many keys.
const (
	fewQueries, manyQueries = 48, 240
	cachedScores            = 1 << 16
	queryStep               = 12 // rows that kernels multiply at once
)

func (p *attention) block() int {
	rows := cachedScores / max(p.keys, 1) / queryStep * queryStep
	return min(max(rows, fewQueries), manyQueries, max(p.queries, 1))
}

// parallelHeads reports whether workers compute different heads; if there are too few heads, they compute parts of the
// products of one head. The results are bit-identical.
func (p *attention) parallelHeads(workers int) bool { return p.groups() >= workers }

// groups is the number of heads of K and V.
func (p *attention) groups() int { return p.heads / max(p.group, 1) }

// attentionWork is the scratch of each head in progress: blocks of scores, and buffers for products.
func attentionWork(gradient bool) func(*op.Node, []*ir.Array, int) int64 {
	return func(n *op.Node, in []*ir.Array, workers int) int64 {
		p, err := attentionOf(n, in)
		if err != nil {
			return 0
		}
		blocks := p.scoreBlocks(gradient)
		if slots := workers; p.parallelHeads(workers) {
			return int64(slots) * p.slot(in[0].DType, blocks, 1)
		}
		return p.slot(in[0].DType, blocks, workers)
	}
}

// scoreBlocks is the number of blocks of scores: those, in the backward pass their gradients, and the derivatives of
// softcap.
func (p *attention) scoreBlocks(gradient bool) int {
	switch {
	case !gradient:
		return 1
	case p.softcap == 0:
		return 2
	}
	return 3
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
	most, done := int64(0), map[[2]int]bool{}
	for _, b := range p.blocks() { // smaller blocks may be cut into larger tiles
		rows, keys := b.queries, b.keys
		if done[[2]int{rows, keys}] {
			continue
		}
		done[[2]int{rows, keys}] = true
		for _, s := range []gemm.Shape{
			{M: rows, N: keys, K: p.size}, {M: rows, N: p.value, K: keys}, {M: rows, N: keys, K: p.value},
			{M: rows, N: p.size, K: keys}, {M: keys, N: p.size, K: rows}, {M: keys, N: p.value, K: rows},
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
	first   bool // of its group
	scale   T
	pool    gemm.Pool
	scores  [][]T // blocks
	product []byte
}

// each calls f for every head, with scratch of its blocks of scores. The heads of a group follow each other, as they
// add to the same gradients.
func each[T number](c *op.Call, p *attention, gradient bool, f func(h *head[T])) {
	dt, scale, blocks := c.In[0].DType, T(c.Float("scale", 1)), p.scoreBlocks(gradient)
	one := func(i, slot int, pool gemm.Pool) {
		size := p.slot(dt, blocks, pool.Workers())
		work := c.Work[int64(slot)*size:][:size]
		h := &head[T]{attention: p, scale: scale, pool: pool}
		for range blocks {
			h.scores = append(h.scores, kernel.Words[T](work[:p.scoreBytes(dt)]))
			work = work[p.scoreBytes(dt):]
		}
		h.product = work
		for member := range p.group {
			h.index, h.first = i*p.group+member, member == 0
			f(h)
		}
	}
	// A worker computes all heads of a group, so that no two workers add to the same gradients of keys and values.
	if p.parallelHeads(c.Pool.Workers()) {
		c.Pool.Slots(p.groups(), func(i, slot int) { one(i, slot, gemm.CallerPool{}) })
		return
	}
	for i := range p.groups() {
		one(i, 0, c.Pool)
	}
}
