package blas

import (
	"math"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// workers is not an Implementation: a type argument counts as used by reflection, and the linker would keep all methods of gonum's BLAS.
var workers = sync.OnceValue(func() *op.Pool { return op.NewPool(runtime.GOMAXPROCS(0)) })

// Cholesky stores the upper triangular factor of a symmetric positive definite matrix, A = UᵀU, in its upper triangle, and
// reports whether A is positive definite. It has one worker per processor.
func Cholesky(n int, a []float64, lda int) bool { return New(workers()).Cholesky(n, a, lda) }

// Orders up to which a matrix is factored by panels, and a panel by rows. They determine the rounding.
const (
	panels = 256
	panel  = 64
)

// Cholesky factors one half, updates the other half (Schur complement), and recurses.
func (impl Implementation) Cholesky(n int, a []float64, lda int) bool {
	if n <= panels {
		return impl.factorPanels(n, a, lda)
	}
	h := roundUp(n/2, leaf)
	if !impl.Cholesky(h, a, lda) {
		return false
	}
	right, rest := a[h:], a[h*lda+h:]
	impl.Dtrsm(blas.Left, blas.Upper, blas.Trans, blas.NonUnit, h, n-h, 1, a, lda, right, lda)
	impl.Dsyrk(blas.Upper, blas.Trans, n-h, h, -1, right, lda, 1, rest, lda)
	return impl.Cholesky(n-h, rest, lda)
}

// factorPanels computes a panel of rows at a time from the finished rows above it (left-looking).
func (impl Implementation) factorPanels(n int, a []float64, lda int) bool {
	for j := 0; j < n; j += panel {
		wide := min(panel, n-j)
		end := j + wide
		diagonal := a[j*lda+j:]
		impl.Dsyrk(blas.Upper, blas.Trans, wide, j, -1, a[j:], lda, 1, diagonal, lda)
		if !impl.factorRows(wide, diagonal, lda) {
			return false
		}
		if end < n {
			right := a[j*lda+end:]
			impl.Dgemm(blas.Trans, blas.NoTrans, wide, n-end, j, -1, a[j:], lda, a[end:], lda, 1, right, lda)
			impl.Dtrsm(blas.Left, blas.Upper, blas.Trans, blas.NonUnit, wide, n-end, 1, diagonal, lda, right, lda)
		}
	}
	return true
}

// factorRows computes a row at a time from the finished rows above it.
func (impl Implementation) factorRows(n int, a []float64, lda int) bool {
	for i := range n {
		pivot := &a[i*lda+i]
		*pivot -= impl.Ddot(i, a[i:], lda, a[i:], lda)
		if !(*pivot > 0) {
			return false
		}
		*pivot = math.Sqrt(*pivot)
		if i+1 < n {
			row := a[i*lda+i+1:]
			impl.Dgemv(blas.Trans, i, n-i-1, -1, a[i+1:], lda, a[i:], lda, 1, row, 1)
			impl.Dscal(n-i-1, 1 / *pivot, row, 1)
		}
	}
	return true
}
