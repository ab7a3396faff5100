package backward

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/engine/gemm"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

// attentions are attention that keeps for each query the logarithm of the sum of exponentials of its scores, and the gradient,
// which computes the scores again from it, block by block of queries (Dao et al., FlashAttention, 2022, arXiv:2205.14135,
// appendix B.2):
//
//	Y, L = AttentionKeep(Q, K, V, mask)                      Y = Softmax(scale·Q·Kᵀ + mask)·V
//	dQ, dK, dV = AttentionGrad(Q, K, V, mask, Y, L, dY)
//
// Q, K, V and Y have their axes in the orders permQ, permK, permV and permY, the last one in its place; in these orders
// the axes before the last two are the same in all. The mask, which may be absent, is broadcast to the scores.
func attentions() []op.Op {
	return []op.Op{
		{Type: "AttentionKeep", Shape: attentionShape, Work: attentionWork(1), Run: byType(runKeep[float32], runKeep[float64])},
		{Type: "AttentionGrad", Shape: attentionGradShape, Work: attentionWork(2), Run: byType(runGrad[float32], runGrad[float64])},
	}
}

// A stack is an operand's matrices where they lie: the axes in their order, and the strides of those.
type stack struct{ shape, strides []int64 }

func stackOf(n *op.Node, name string, a *ir.Array) (stack, error) {
	s, rank := stack{a.Shape, op.Strides(a.Shape)}, len(a.Shape)
	perm := n.Ints("perm" + name)
	if rank < 2 {
		return s, fmt.Errorf("input %s is %s, not matrices", name, a)
	}
	if perm == nil {
		return s, nil
	}
	if !isOrder(perm, rank) {
		return s, fmt.Errorf("input %s %s: its axes cannot be in the order %v", name, a, perm)
	}
	return stack{inOrder(s.shape, perm), inOrder(s.strides, perm)}, nil
}

// isOrder reports whether perm is an order of axes with the last one in its place.
func isOrder(perm []int64, rank int) bool {
	sorted := slices.Sorted(slices.Values(perm))
	for i, p := range sorted {
		if p != int64(i) {
			return false
		}
	}
	return len(perm) == rank && perm[rank-1] == int64(rank-1)
}

func inOrder(x, perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, p := range perm {
		out[i] = x[p]
	}
	return out
}

func (s stack) rows() int { return int(s.shape[len(s.shape)-2]) }

func (s stack) cols() int { return int(s.shape[len(s.shape)-1]) }

func (s stack) lead() []int64 { return s.shape[:len(s.shape)-2] }

// row is the distance of rows.
func (s stack) row() int { return int(s.strides[len(s.shape)-2]) }

// place is where matrix i of the stack begins.
func (s stack) place(i int) int {
	at := 0
	for axis := len(s.shape) - 3; axis >= 0; axis-- {
		at += i % int(s.shape[axis]) * int(s.strides[axis])
		i /= int(s.shape[axis])
	}
	return at
}

// An attention is one node and its operands.
type attention struct {
	q, k, v, y    stack
	mask          *stack // strides 0 where it repeats
	queries, keys int
	size, value   int
	heads         int
	out, sums     []int64 // shapes of Y and L
}

func attentionOf(n *op.Node, in []*ir.Array) (*attention, error) {
	p := &attention{}
	for i, s := range []*stack{&p.q, &p.k, &p.v} {
		name := "QKV"[i : i+1]
		a, err := op.Arg(in, i, name)
		if err != nil {
			return nil, err
		}
		if err := floating(a, i); err != nil {
			return nil, err
		}
		if a.DType != in[0].DType {
			return nil, fmt.Errorf("input %s is %s beside %s", name, a, in[0])
		}
		if *s, err = stackOf(n, name, a); err != nil {
			return nil, err
		}
		if !slices.Equal(s.lead(), p.q.lead()) {
			return nil, fmt.Errorf("input %s %s: its matrices are not stacked as those of Q, %v", name, a, p.q.lead())
		}
	}
	p.queries, p.keys, p.size, p.value = p.q.rows(), p.k.rows(), p.q.cols(), p.v.cols()
	if p.k.cols() != p.size || p.v.rows() != p.keys {
		return nil, fmt.Errorf("inputs Q %v, K %v and V %v do not go together", p.q.shape, p.k.shape, p.v.shape)
	}
	p.heads = int(op.Product(p.q.lead()))
	p.sums = p.q.shape[:len(p.q.shape)-1]
	if err := p.result(n); err != nil {
		return nil, err
	}
	return p, p.masked(in)
}

// result finds how Y lies in memory.
func (p *attention) result(n *op.Node) error {
	shape := append(slices.Clone(p.sums), int64(p.value))
	if err := (ir.Spec{Shape: shape}).Valid(); err != nil {
		return err
	}
	if err := (ir.Spec{Shape: append(slices.Clone(p.sums), int64(p.keys))}).Valid(); err != nil {
		return err
	}
	perm := n.Ints("permY")
	if perm == nil {
		p.out, p.y = shape, stack{shape, op.Strides(shape)}
		return nil
	}
	if !isOrder(perm, len(shape)) {
		return fmt.Errorf("the axes of a result %v cannot be in the order %v", shape, perm)
	}
	p.out = inOrder(shape, perm)
	strides := make([]int64, len(shape))
	for i, s := range op.Strides(p.out) {
		strides[perm[i]] = s
	}
	p.y = stack{shape, strides}
	return nil
}

func (p *attention) masked(in []*ir.Array) error {
	m := op.Opt(in, 3)
	if m == nil {
		return nil
	}
	if err := isLike(in[0], m, 3, -1); err != nil {
		return err
	}
	scores := append(slices.Clone(p.sums), int64(p.keys))
	s := stack{scores, make([]int64, len(scores))}
	for i, d := range m.Shape {
		at := len(scores) - len(m.Shape) + i
		switch {
		case at < 0 || d != 1 && d != scores[at]:
			return fmt.Errorf("input mask %s does not broadcast to %v", m, scores)
		case d != 1:
			s.strides[at] = op.Product(m.Shape[i+1:])
		}
	}
	p.mask = &s
	return nil
}

func attentionShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := attentionOf(n, in)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: in[0].DType, Shape: p.out}, {DType: in[0].DType, Shape: p.sums}}, nil
}

func attentionGradShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := attentionOf(n, in)
	if err != nil {
		return nil, err
	}
	for i, shape := range [][]int64{p.out, p.sums, p.out} {
		a, err := op.Arg(in, 4+i, []string{"Y", "L", "dY"}[i])
		if err != nil {
			return nil, err
		}
		if a.DType != in[0].DType || !slices.Equal(a.Shape, shape) {
			return nil, fmt.Errorf("input %d is %s, want the shape %v", 4+i, a, shape)
		}
	}
	return []ir.Spec{in[0].Spec(), in[1].Spec(), in[2].Spec()}, nil
}

// A block of queries is large enough that packing keys and values costs little beside the products, and its
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

// apart reports whether heads are shared over workers; if they are too few, products of one head are. The results are the
// same.
func (p *attention) apart(workers int) bool { return p.heads >= workers }

// attentionWork is for each head that is worked on so many blocks of scores, and room for products.
func attentionWork(blocks int) func(*op.Node, []*ir.Array, int) int64 {
	return func(n *op.Node, in []*ir.Array, workers int) int64 {
		p, err := attentionOf(n, in)
		if err != nil {
			return 0
		}
		if slots := workers; p.apart(workers) {
			return int64(slots) * p.slot(in[0].DType, blocks, 1)
		}
		return p.slot(in[0].DType, blocks, workers)
	}
}

// slot is the bytes for one head.
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

// A head is one matrix of each operand while it is worked on.
type head[T number] struct {
	*attention
	index   int
	scale   T
	pool    gemm.Pool
	scores  [][]T // blocks
	product []byte
}

// alone is the pool of one worker.
type alone struct{}

func (alone) Workers() int { return 1 }

func (alone) For(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// each gives f every head of a call, with scratch of so many blocks.
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
	if p.apart(c.Pool.Workers()) {
		c.Pool.Slots(p.heads, func(i, slot int) { one(i, slot, alone{}) })
		return
	}
	for i := range p.heads {
		one(i, 0, c.Pool)
	}
}
