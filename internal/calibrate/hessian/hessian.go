package hessian

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/ir"
)

// A Hessian is XᵀX over the rows X of all samples (the GPTQ Hessian up to a factor), in float32; only the upper
// triangle is kept.
type Hessian struct {
	K int

	pool gemm.Pool
	sum  []float32 // K×K, upper triangle; of a Factor after it was factored
	rows []float32 // not added yet
	work []byte

	n      int     // number of rows
	fourth float64 // sum of the rows' squared squared norms, for Shrinkage
}

const (
	samplesAtOnce = 512
	stripe        = 192 // rows of H computed at a time
)

// New returns a zero Hessian of k inputs that uses the workers of p.
func New(p gemm.Pool, k int) *Hessian {
	h := &Hessian{pool: p}
	h.Reset(k)
	return h
}

// Reset sets h to zero for k inputs. Its memory, 4·K² bytes, a Factor included, is allocated when rows are added.
func (h *Hessian) Reset(k int) {
	h.K, h.rows, h.sum = k, h.rows[:0], nil
	h.n, h.fourth = 0, 0
}

// Add adds rows of K elements. The division of rows into calls does not change the result.
func (h *Hessian) Add(x []float32) {
	if h.K == 0 || len(x)%h.K != 0 {
		panic(fmt.Sprintf("hessian: %d elements are not whole rows of %d", len(x), h.K))
	}
	h.count(x)
	for len(x) > 0 {
		// Always the same number of rows in a product, so that sums are rounded alike however samples are divided.
		n := min(len(x), samplesAtOnce*h.K-len(h.rows))
		h.rows = append(h.rows, x[:n]...)
		if x = x[n:]; len(h.rows) == samplesAtOnce*h.K {
			h.flush()
		}
	}
}

// count updates the statistics for Shrinkage.
func (h *Hessian) count(x []float32) {
	squares := make([]float64, len(x)/h.K)
	h.pool.For(len(squares), func(i int) {
		square := 0.0
		for _, v := range x[i*h.K:][:h.K] {
			square += float64(v) * float64(v)
		}
		squares[i] = square
	})
	h.n += len(squares)
	// In the order of rows: the sum must not depend on the workers.
	for _, square := range squares {
		h.fourth += float64(square * square)
	}
}

// flush adds the pending rows, a stripe of rows of H at a time, from the diagonal to the right.
func (h *Hessian) flush() {
	if h.sum == nil {
		h.sum = make([]float32, h.K*h.K)
	}
	if len(h.rows) == 0 {
		return
	}
	for i := 0; i < h.K; i += stripe {
		right := gemm.Rows(h.rows[i:], h.K)
		h.accumulate(i, i, gemm.Shape{M: min(stripe, h.K-i), N: h.K - i, K: len(h.rows) / h.K},
			gemm.FloatProduct{A: right.T(), B: right})
	}
	h.rows = h.rows[:0]
}

// accumulate adds a product to the elements from (i, j) on.
func (h *Hessian) accumulate(i, j int, s gemm.Shape, p gemm.FloatProduct) {
	p.C, p.Stride, p.Accumulate = h.sum[i*h.K+j:], h.K, true
	gemm.Float(h.pool, s, h.scratch(s), p)
}

// scratch is scratch memory of a product.
func (h *Hessian) scratch(s gemm.Shape) []byte {
	n := gemm.FloatWork(s, 1, h.pool.Workers(), false)
	if int64(cap(h.work)) < n {
		h.work = ir.AlignedBytes(n)
	}
	return h.work[:n]
}

// At is element (i, j).
func (h *Hessian) At(i, j int) float64 {
	h.flush()
	if i > j {
		i, j = j, i
	}
	return float64(h.sum[i*h.K+j])
}

// Finite reports whether all rows were finite: an element that is not makes its square on the diagonal infinite or NaN.
func (h *Hessian) Finite() bool {
	for i := range h.K {
		if v := h.At(i, i); math.IsNaN(v - v) {
			return false
		}
	}
	return true
}
