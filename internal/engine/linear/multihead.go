package linear

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A stack says where the vectors of a tensor are: that of token t of head h of batch b begins
// at from + b·batch + h·head + t·token. Their elements lie next to each other.
type stack struct{ from, batch, head, token int }

// split is a tensor [batch, heads, tokens, size].
func split(heads, tokens, size int) stack {
	return stack{batch: heads * tokens * size, head: tokens * size, token: size}
}

// packed is a tensor [batch, tokens, heads·size].
func packed(heads, tokens, size int) stack {
	return stack{batch: tokens * heads * size, head: size, token: heads * size}
}

func (s stack) at(batch, head int) int { return s.from + batch*s.batch + head*s.head }

// head is the matrix of all tokens of one head.
func head[T any](s stack, data []T, batch, head int) gemm.Matrix[T] {
	return gemm.Rows(data[min(s.at(batch, head), len(data)):], s.token)
}

// A multihead is attention over the heads of all batches: where their vectors are.
type multihead struct {
	attention.Shape
	batch, heads int
	shared       int // so many heads of queries share one of keys and values
	q, k, v, y   stack
	reach        func(batch int) attention.Reach // nil where all keys count
}

// tensors is the memory that a multihead works on.
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
			Q: head(m.q, x.q, b, h), K: head(m.k, x.k, b, h/m.shared), V: head(m.v, x.v, b, h/m.shared),
			Y: x.y[min(m.y.at(b, h), len(x.y)):], Stride: m.y.token,
		}
		if x.mask != nil {
			heads[i].Mask = x.mask(b, h)
		}
		if m.reach != nil {
			heads[i].Reach = m.reach(b)
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
