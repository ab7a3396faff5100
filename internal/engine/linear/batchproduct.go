package linear

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A batchProduct is products of stacked matrices: the strides of batch apply to those of a and b, those of c are
// contiguous.
type batchProduct[T computeType] struct {
	gemm.Shape
	batch              []int64
	a, b               gemm.Matrix[T]
	aStrides, bStrides []int64
	c                  []T
}

// few is the number of multiplications below which blocking costs more than it saves.
const few = 1 << 12

func (p *batchProduct[T]) small() bool { return p.M*p.N*p.K < few }

// multiply computes c, or counts its scratch memory.
func (p *batchProduct[T]) multiply(c *contraction) {
	count := op.Product(p.batch)
	var work []byte
	if _, single := any(p.c).([]float32); single && !p.small() {
		work = c.bytes(gemm.FloatWork(p.Shape, int(count), c.workers, false))
	}
	switch {
	case c.counts || len(p.c) == 0:
	case p.small():
		c.pool.Rows(int(count), max(1, few/max(p.M*p.N*p.K, 1)), func(from, to int) {
			for i := from; i < to; i++ {
				p.product(i)
			}
		})
	default:
		p.blocks(c.pool, int(count), work)
	}
}

// of is operand m's matrix of product i.
func (p *batchProduct[T]) of(m gemm.Matrix[T], i int, strides []int64) gemm.Matrix[T] {
	m.Data = m.Data[min(place(int64(i), p.batch, strides), int64(len(m.Data))):]
	return m
}

// product computes a single one, element by element.
func (p *batchProduct[T]) product(i int) {
	a, b, c := p.of(p.a, i, p.aStrides), p.of(p.b, i, p.bStrides), p.c[i*p.M*p.N:]
	for m := range p.M {
		for n := range p.N {
			sum := T(0)
			for k := range p.K {
				// The conversion rounds the product: arm64 would fuse it with the addition.
				sum += T(a.Data[m*a.Row+k*a.Col] * b.Data[k*b.Row+n*b.Col])
			}
			c[m*p.N+n] = sum
		}
	}
}

// blocks computes the products with package gemm.
func (p *batchProduct[T]) blocks(pool *op.Pool, count int, work []byte) {
	var floats []gemm.FloatProduct
	for i := range count {
		a, b, c := p.of(p.a, i, p.aStrides), p.of(p.b, i, p.bStrides), p.c[i*p.M*p.N:][:p.M*p.N]
		if c, single := any(c).([]float32); single {
			floats = append(floats, gemm.FloatProduct{A: any(a).(gemm.Matrix[float32]),
				B: any(b).(gemm.Matrix[float32]), C: c, Stride: p.N})
			continue
		}
		gemm.Plain(pool, p.Shape, a, b, c, p.N)
	}
	gemm.Float(pool, p.Shape, work, floats...)
}
