package hessian

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// leaf is the order up to which a diagonal block is factored and a triangular system is solved row by row; piece is the
// number of columns of such a system that a worker solves at a time.
const leaf, piece = 64, 256

// cholesky replaces the upper triangle of -H by R, H = RᵀR, and returns ErrSingular if H is not positive definite: what
// is left of -H is added to, as products are. Nearly all of the work is products of float32 matrices; the factor of a
// damped Hessian does not need more: its error is that of a dampening of about 1e-6.
//
// The work grows with the cube of K, minutes at 16,384, so that each product looks at ctx, and what is left is not
// computed once it ends.
func (h *Hessian) cholesky(ctx context.Context) error { return h.factorBlock(ctx, 0, h.K) }

// factorBlock factors the n rows and columns from at on: one half, the rows right of it, what they subtract from the
// other half (the Schur complement), and the other half.
func (h *Hessian) factorBlock(ctx context.Context, at, n int) error {
	if n <= leaf {
		if !h.factorLeaf(at, n) {
			return ErrSingular
		}
		return nil
	}
	half := halfOf(n)
	middle, end := at+half, at+n
	if err := h.factorBlock(ctx, at, half); err != nil {
		return err
	}
	// In this order: the rows right of the first half need its factor, the Schur complement needs these rows, and the
	// factor of the second half the complement.
	h.solve(ctx, at, half, middle, end)
	for i := middle; i < end && ctx.Err() == nil; i += stripe {
		h.subtract(at, half, i, min(i+stripe, end), i, end)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.factorBlock(ctx, middle, n-half)
}

// halfOf is about half of n, a multiple of leaf.
func halfOf(n int) int { return (n/2 + leaf - 1) / leaf * leaf }

// solve replaces the n rows from at on, in the columns [from, to), by R⁻ᵀ times them, where R is the factor of the
// diagonal block of these rows: one half, what it subtracts from the other half, and the other half. Once ctx has ended
// it leaves the rest as it is.
func (h *Hessian) solve(ctx context.Context, at, n, from, to int) {
	if ctx.Err() != nil {
		return
	}
	if n <= leaf {
		h.solveLeaf(at, n, from, to)
		return
	}
	half := halfOf(n)
	h.solve(ctx, at, half, from, to)
	// A stripe at a time bounds the scratch memory of a product, and how long an interruption waits.
	for i := at + half; i < at+n && ctx.Err() == nil; i += stripe {
		h.subtract(at, half, i, min(i+stripe, at+n), from, to)
	}
	h.solve(ctx, at+half, n-half, from, to)
}

// subtract subtracts from the rows [top, bottom), in the columns [from, to), the product of the n rows from at on:
// transposed, of the columns [top, bottom), and of the columns [from, to). As these rows of -H are negated, it is
// added.
func (h *Hessian) subtract(at, n, top, bottom, from, to int) {
	left, right := gemm.Rows(h.sum[at*h.K+top:], h.K), gemm.Rows(h.sum[at*h.K+from:], h.K)
	h.accumulate(top, from, gemm.Shape{M: bottom - top, N: to - from, K: n}, gemm.FloatProduct{A: left.T(), B: right})
}

// factorLeaf is factorBlock for up to leaf rows, in float64.
func (h *Hessian) factorLeaf(at, n int) bool {
	var r [leaf][leaf]float64
	for i := range n {
		for j, v := range h.sum[(at+i)*h.K+at:][:n] {
			r[i][j] = -float64(v)
		}
	}
	for i := range n {
		if !(r[i][i] > 0) {
			return false
		}
		d := math.Sqrt(r[i][i])
		for j := i; j < n; j++ {
			r[i][j] /= d
		}
		for k := i + 1; k < n; k++ {
			for j := k; j < n; j++ {
				// The conversion keeps compilers from fusing both operations, which would round otherwise on other processors.
				r[k][j] -= float64(r[i][k] * r[i][j])
			}
		}
	}
	for i := range n {
		row := h.sum[(at+i)*h.K+at:][:n]
		for j := i; j < n; j++ {
			row[j] = float32(r[i][j])
		}
	}
	return true
}

// solveLeaf is solve for up to leaf rows.
func (h *Hessian) solveLeaf(at, n, from, to int) {
	h.pool.For((to-from+piece-1)/piece, func(p int) {
		col := from + p*piece
		cols := min(piece, to-col)
		for i := range n {
			row, diagonal := h.sum[(at+i)*h.K+col:][:cols], h.sum[(at+i)*h.K+at+i]
			kernel.GemvFloat(row, h.sum[at*h.K+at+i:], h.K, h.sum[at*h.K+col:], h.K, i)
			for j := range row {
				// What is above is R already; these rows are still of -H, to which the products were added.
				row[j] /= -diagonal
			}
		}
	})
}
