package blas

import "gonum.org/v1/gonum/blas"

// A triangle is a triangular system. Its unknowns are the rows of B if A is on the left, else the columns; the other axis of B
// is the independent right-hand sides.
type triangle struct {
	Implementation
	side blas.Side
	ul   blas.Uplo
	t    blas.Transpose
	d    blas.Diag
	a    []float64
	lda  int
	b    []float64
	ldb  int
}

// Triangles up to the order leaf are solved by gonum, for piece right-hand sides at a time.
const leaf, piece = 32, 128

// Dtrsm solves A·X = alpha·B, or X·A = alpha·B if A is on the right, for a triangular A that may be transposed, and
// stores X in B.
func (impl Implementation) Dtrsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	order, others := m, n
	if s == blas.Right {
		order, others = n, m
	}
	if order <= 1 || order*order*others <= impl.small {
		impl.Implementation.Dtrsm(s, ul, tA, d, m, n, alpha, a, lda, b, ldb)
		return
	}
	scale(alpha, b, ldb, m, n)
	t := triangle{impl, s, ul, tA, d, a, lda, b, ldb}
	t.solve(0, order, others)
}

// solve computes the unknowns [first, end) by recursion: one half, the update of the other half by a matrix product, the other
// half.
func (t *triangle) solve(first, end, others int) {
	if end-first <= leaf {
		t.leaf(first, end, others)
		return
	}
	middle := first + roundUp((end-first)/2, leaf)
	if t.forward() {
		t.solve(first, middle, others)
		t.take(first, middle, middle, end, others)
		t.solve(middle, end, others)
		return
	}
	t.solve(middle, end, others)
	t.take(middle, end, first, middle, others)
	t.solve(first, middle, others)
}

// forward reports forward substitution: the first equation has one unknown.
func (t *triangle) forward() bool {
	lower := (t.ul == blas.Lower) == (t.t == blas.NoTrans)
	return lower == (t.side == blas.Left)
}

// take subtracts the contribution of the unknowns [x0, x1) from the equations [y0, y1).
func (t *triangle) take(x0, x1, y0, y1, others int) {
	a, b := matrixOf(t.a, t.lda, t.t), matrixOf(t.b, t.ldb, blas.NoTrans)
	if t.side == blas.Left {
		left, right := matrix{a.from(y0, x0), a.row, a.col}, matrix{b.from(x0, 0), b.row, b.col}
		t.add(&product{b.from(y0, 0), t.ldb, left, right, y1 - y0, others, x1 - x0, -1, blas.All})
		return
	}
	left, right := matrix{b.from(0, x0), b.row, b.col}, matrix{a.from(x0, y0), a.row, a.col}
	t.add(&product{b.from(0, y0), t.ldb, left, right, others, y1 - y0, x1 - x0, -1, blas.All})
}

func (t *triangle) leaf(first, end, others int) {
	a := t.a[first*t.lda+first:]
	t.pool.For((others+piece-1)/piece, func(i int) {
		from, wide := i*piece, min(piece, others-i*piece)
		if t.side == blas.Left {
			t.Implementation.Implementation.Dtrsm(t.side, t.ul, t.t, t.d, end-first, wide, 1, a, t.lda, t.b[first*t.ldb+from:], t.ldb)
			return
		}
		t.Implementation.Implementation.Dtrsm(t.side, t.ul, t.t, t.d, wide, end-first, 1, a, t.lda, t.b[from*t.ldb+first:], t.ldb)
	})
}
