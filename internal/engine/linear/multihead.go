package linear

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A headLayout is the layout of the heads of a tensor: the vector of token t of head h of batch b starts at from +
// b·batch + h·head + t·token. Its elements are contiguous.
type headLayout struct{ from, batch, head, token int }

// split is a tensor [batch, heads, tokens, size].
func split(heads, tokens, size int) headLayout {
	return headLayout{batch: heads * tokens * size, head: tokens * size, token: size}
}

// packed is a tensor [batch, tokens, heads·size].
func packed(heads, tokens, size int) headLayout {
	return headLayout{batch: tokens * heads * size, head: size, token: heads * size}
}

func (s headLayout) at(batch, head int) int { return s.from + batch*s.batch + head*s.head }

// head is the matrix of all tokens of one head.
func head[T any](s headLayout, data []T, batch, head int) gemm.Matrix[T] {
	// Without tokens the start of a head is outside of the tensor.
	return gemm.Rows(data[min(s.at(batch, head), len(data)):], s.token)
}

// A multihead is attention over the heads of all batches, with the layouts of its operands.
type multihead struct {
	attention.Shape
	batch, heads  int
	queriesPerKey int // number of query heads per key head
	q, k, v, y    headLayout
	keyRange      func(batch int) attention.KeyRange // nil for all keys
}

// tensors is the memory of the operands of a multihead.
type tensors[T attention.Float] struct {
	q, k, v, y []T
	probe      []T                                     // [batch, heads, queries, keys], nil for none
	sink       func(head int) []T                      // nil for none
	mask       func(batch, head int) attention.Mask[T] // nil for none
}

func (m *multihead) count() int { return m.batch * m.heads }

func workOf[T attention.Float](m *multihead, workers int) int64 {
	return attention.Work[T](m.Shape, m.count(), workers)
}

func attend[T attention.Float](p *op.Pool, m *multihead, work []byte, o attention.Options[T], x tensors[T]) {
	heads := make([]attention.Head[T], m.count())
	for i := range heads {
		b, h := i/m.heads, i%m.heads
		heads[i] = attention.Head[T]{
			Q: head(m.q, x.q, b, h), K: head(m.k, x.k, b, h/m.queriesPerKey), V: head(m.v, x.v, b, h/m.queriesPerKey),
			Y: x.y[min(m.y.at(b, h), len(x.y)):], Stride: m.y.token,
		}
		if x.mask != nil {
			heads[i].Mask = x.mask(b, h)
		}
		if m.keyRange != nil {
			heads[i].KeyRange = m.keyRange(b)
		}
		if x.sink != nil {
			heads[i].Sink = x.sink(h)
		}
		if x.probe != nil {
			n := m.Queries * m.Keys
			heads[i].Probe = x.probe[i*n:][:n]
		}
	}
	attention.Run(p, m.Shape, work, o, heads)
}
