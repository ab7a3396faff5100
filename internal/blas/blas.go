package blas

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// A Pool runs tasks concurrently; engine/op has one.
type Pool interface {
	For(n int, f func(i int))
	Workers() int
}

// An Implementation is gonum's with faster matrix products.
type Implementation struct {
	gonum.Implementation
	pool    Pool
	small   int // products of at most this many multiplications are left to gonum
	scratch *sync.Pool
}

// New returns an implementation that uses the workers of p.
func New(p Pool) Implementation {
	return Implementation{pool: p, small: 1 << 15, scratch: &sync.Pool{New: func() any { return new(scratch) }}}
}

// Dgemm computes C = alpha·A·B + beta·C, of which A and B may be transposed.
func (impl Implementation) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if m*n*k <= impl.small {
		impl.Implementation.Dgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	impl.Implementation.Dgemm(tA, tB, m, n, k, 0, a, lda, b, ldb, 1, c, ldc) // checks the arguments
	scale(beta, c, ldc, m, n)
	impl.add(&product{c, ldc, matrixOf(a, lda, tA), matrixOf(b, ldb, tB), m, n, k, alpha, blas.All})
}

// scale multiplies rows of c by beta; beta 0 also clears NaN.
func scale(beta float64, c []float64, ldc, m, n int) {
	if beta == 1 {
		return
	}
	for i := range m {
		row := c[i*ldc:][:n]
		for j := range row {
			row[j] *= beta
		}
		if beta == 0 {
			clear(row)
		}
	}
}

// Dsyrk computes a triangle of C = alpha·A·Aᵀ + beta·C, or of alpha·Aᵀ·A + beta·C.
func (impl Implementation) Dsyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	if n*n*k <= impl.small {
		impl.Implementation.Dsyrk(ul, t, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	impl.Implementation.Dsyrk(ul, t, n, k, 0, a, lda, beta, c, ldc) // multiplies by beta
	left := matrixOf(a, lda, t)
	impl.add(&product{c, ldc, left, left.t(), n, n, k, alpha, ul})
}
