package hessian

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
)

// A Factor is the upper Cholesky factor R of a damped Hessian, permuted to the order in which rows are solved: the last
// row of R first. It is not changed.
type Factor struct {
	K     int
	Order []int     // the row of W at each position
	Unit  []float32 // K×K: R with each row divided by its diagonal; the lower triangle is unused
	Loss  []float64 // the squared diagonal of R, by position
}

// Options are the dampening of a Hessian and the order of rows.
type Options struct {
	// Damp is the dampening: it is added to the diagonal, as a fraction of the diagonal's mean.
	Damp float64
	// Block is the block size: the rows of a block stay together.
	Block int
	// Order is the activation order (desc_act): blocks, and rows within a block, with large diagonals are solved first,
	// while later rows can still compensate their errors. Otherwise rows keep their order.
	Order bool
}

// ErrSingular reports a Hessian without Cholesky factor, a property of the inputs of one layer.
var ErrSingular = errors.New("the Hessian has no Cholesky factor: it holds infinities or NaN, or --damp is too small")

// Factor factors h in place: H + damp·mean(diagonal)·I = RᵀR, or returns ErrSingular, or the error of ctx. Afterwards
// only Reset may be called on h, which invalidates the Factor.
func (h *Hessian) Factor(ctx context.Context, o Options) (*Factor, error) {
	f := &Factor{K: h.K, Order: h.order(o)}
	mean := h.mean()
	h.rows = nil // up to a sixteenth of a large Hessian
	// From here on sum holds -H: what the factorization subtracts is added, which is what kernels do.
	h.permute(f.Order)
	for i := range h.K {
		h.sum[i*h.K+i] -= float32(o.Damp * mean)
		if mean == 0 {
			h.sum[i*h.K+i] = -1 // the input is always zero: any rounding is exact
		}
	}
	if err := h.cholesky(ctx); err != nil {
		return nil, err
	}
	// The Factor takes the memory of the Hessian: 4·K² bytes instead of twice as much.
	f.divide(h.pool, h.sum)
	if slices.ContainsFunc(f.Loss, func(d float64) bool { return math.IsNaN(d) || math.IsInf(d, 0) }) {
		return nil, ErrSingular
	}
	return f, nil
}

// mean is the mean of the diagonal.
func (h *Hessian) mean() (mean float64) {
	for i := range h.K {
		mean += h.At(i, i) / float64(h.K)
	}
	return mean
}

// order is the row of W at each position: the last position is quantized first.
func (h *Hessian) order(o Options) []int {
	rows := make([]int, h.K)
	for i := range rows {
		rows[i] = h.K - 1 - i
	}
	if !o.Order {
		return rows
	}
	worth := make([]float64, h.K)
	for i := range worth {
		worth[i] = h.At(i, i)
	}
	ascending := func(a, b int) int { return cmp.Or(cmp.Compare(worth[a], worth[b]), cmp.Compare(b, a)) }
	// Blocks stay together, as they share scales, which are chosen when the first of their rows is reached.
	block := make([]float64, (h.K+o.Block-1)/o.Block)
	for i := range worth {
		block[i/o.Block] += worth[i]
	}
	slices.SortFunc(rows, func(a, b int) int {
		return cmp.Or(cmp.Compare(block[a/o.Block], block[b/o.Block]), cmp.Compare(b/o.Block, a/o.Block), ascending(a, b))
	})
	return rows
}

// permute negates h, and applies order to its columns, a row at a time, and then to its rows, cycle by cycle.
func (h *Hessian) permute(order []int) {
	h.mirror()
	blocks := (h.K + square - 1) / square
	h.pool.For(blocks, func(b int) {
		copied := make([]float32, h.K)
		for i := b * square; i < min((b+1)*square, h.K); i++ {
			row := h.row(i)
			copy(copied, row)
			for j, from := range order {
				row[j] = -copied[from]
			}
		}
	})
	moved, first := make([]bool, h.K), make([]float32, h.K)
	for i := range order {
		if moved[i] {
			continue
		}
		copy(first, h.row(i))
		to := i
		// A cycle at a time, with one row of scratch memory in place of a second matrix.
		for ; order[to] != i; to = order[to] {
			copy(h.row(to), h.row(order[to]))
			moved[to] = true
		}
		copy(h.row(to), first)
		moved[to] = true
	}
}

func (h *Hessian) row(i int) []float32 { return h.sum[i*h.K:][:h.K] }

// square is the order of the blocks that are mirrored at a time, which stay in the L1 cache.
const square = 32

// mirror copies the upper triangle to the lower.
func (h *Hessian) mirror() {
	h.pool.For((h.K+square-1)/square, func(b int) {
		bottom := min((b+1)*square, h.K)
		for left := 0; left < bottom; left += square {
			for i := b * square; i < bottom; i++ {
				row := h.row(i)
				for j := left; j < min(left+square, i); j++ {
					row[j] = h.sum[j*h.K+i]
				}
			}
		}
	})
}

// divide divides the rows of R by their diagonal, in place, and extracts the squared diagonal.
func (f *Factor) divide(p gemm.Pool, r []float32) {
	f.Loss, f.Unit = make([]float64, f.K), r
	p.For(f.K, func(i int) {
		row := r[i*f.K+i : (i+1)*f.K]
		d := row[0]
		f.Loss[i] = float64(d) * float64(d)
		for j := range row {
			row[j] /= d
		}
	})
}
