package solve

import (
	"fmt"

	"github.com/mcompress/mcompress/engine/gemm"
)

// A Hessian is XᵀX, the sum over rows of samples, of which the upper triangle is kept: products in float32 over at most
// samplesAtOnce rows, summed in float64.
type Hessian struct {
	K    int
	Rows int64
	sum  []float64 // K×K, upper triangle
}

const (
	samplesAtOnce = 256
	stripe        = 192 // rows of H made at a time
)

// NewHessian returns a sum of nothing. It takes 8·K² bytes.
func NewHessian(k int) *Hessian { return &Hessian{K: k, sum: make([]float64, k*k)} }

// Add adds rows of K elements.
func (h *Hessian) Add(p gemm.Pool, x []float32) {
	if h.K == 0 || len(x)%h.K != 0 {
		panic(fmt.Sprintf("solve: %d elements are not whole rows of %d", len(x), h.K))
	}
	h.Rows += int64(len(x) / h.K)
	for len(x) > 0 {
		part := x[:min(len(x), samplesAtOnce*h.K)]
		h.add(p, part)
		x = x[len(part):]
	}
}

// add goes from the diagonal to the right, some rows of H at a time.
func (h *Hessian) add(p gemm.Pool, x []float32) {
	rows := len(x) / h.K
	tile := make([]float32, stripe*h.K)
	for i := 0; i < h.K; i += stripe {
		s := gemm.Shape{M: min(stripe, h.K-i), N: h.K - i, K: rows}
		right := gemm.Rows(x[i:], h.K)
		work := make([]byte, gemm.FloatWork(s, 1, p.Workers(), false))
		gemm.Float(p, s, work, gemm.FloatProduct{A: right.T(), B: right, C: tile, Stride: s.N})
		p.For(s.M, func(r int) {
			to := h.sum[(i+r)*h.K+i+r : (i+r+1)*h.K]
			for j, v := range tile[r*s.N+r : (r+1)*s.N] {
				to[j] += float64(v)
			}
		})
	}
}

// At is element (i, j).
func (h *Hessian) At(i, j int) float64 {
	if i > j {
		i, j = j, i
	}
	return h.sum[i*h.K+j]
}
