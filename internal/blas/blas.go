package blas

import (
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"
	lapack "gonum.org/v1/gonum/lapack/gonum"

	"github.com/mcompress/mcompress/internal/engine/op"
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

var register = sync.OnceFunc(func() { blas64.Use(New(op.NewPool(runtime.GOMAXPROCS(0)))) })

// Register makes package blas64, and with it gonum's LAPACK and package mat, use an Implementation with one worker per
// processor. gonum's implementation is global to the process; calls after the first do nothing.
func Register() { register() }

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

// block is the maximum order that is left to gonum, which reads the matrix once per 64 rows.
const block = 256

// Cholesky stores the upper triangular factor of a symmetric positive definite matrix, A = UᵀU, in its upper triangle, and
// reports whether A is positive definite. It factors one half, updates the other half (Schur complement), and recurses.
func Cholesky(n int, a []float64, lda int) bool {
	Register()
	if n <= block {
		return lapack.Implementation{}.Dpotrf(blas.Upper, n, a, lda)
	}
	h := roundUp(n/2, leaf)
	if !Cholesky(h, a, lda) {
		return false
	}
	impl, right, rest := blas64.Implementation(), a[h:], a[h*lda+h:]
	impl.Dtrsm(blas.Left, blas.Upper, blas.Trans, blas.NonUnit, h, n-h, 1, a, lda, right, lda)
	impl.Dsyrk(blas.Upper, blas.Trans, n-h, h, -1, right, lda, 1, rest, lda)
	return Cholesky(n-h, rest, lda)
}
