package hessian

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/blas"
)

// A Factor is the upper Cholesky factor R of a damped Hessian, permuted to the order in which rows are solved: the last row of R
// first. It is not changed.
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
	// Order is the activation order (desc_act): blocks, and rows within a block, with large diagonals are solved first, while
	// later rows can still compensate their errors. Otherwise rows keep their order.
	Order bool
}

// errSingular reports a Hessian without Cholesky factor.
var errSingular = errors.New("the Hessian has no Cholesky factor: it holds infinities or NaN, or --damp is too small")

// Factor factors h in place: H + damp·mean(diagonal)·I = RᵀR. Afterwards only Reset may be called on h, which invalidates the
// Factor.
func (h *Hessian) Factor(o Options) (*Factor, error) {
	f := &Factor{K: h.K, Order: h.order(o)}
	mean := h.mean()
	r := h.permute(f.Order)
	for i := range h.K {
		r[i*h.K+i] += o.Damp * mean
		if mean == 0 {
			r[i*h.K+i] = 1 // the input is always zero: any rounding is exact
		}
	}
	ok := blas.Cholesky(h.K, r, h.K)
	h.unit = grown(h.unit, h.K*h.K)
	f.divide(r, h.unit)
	if !ok || slices.ContainsFunc(f.Loss, func(d float64) bool { return math.IsNaN(d) || math.IsInf(d, 0) }) {
		return nil, errSingular
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
	block := make([]float64, (h.K+o.Block-1)/o.Block)
	for i := range worth {
		block[i/o.Block] += worth[i]
	}
	slices.SortFunc(rows, func(a, b int) int {
		return cmp.Or(cmp.Compare(block[a/o.Block], block[b/o.Block]), cmp.Compare(b/o.Block, a/o.Block), ascending(a, b))
	})
	return rows
}

// permute applies order to rows and columns of H, using the free lower triangle as scratch memory.
func (h *Hessian) permute(order []int) []float64 {
	r, diagonal := h.sum, make([]float64, h.K)
	for i, a := range order {
		diagonal[i] = r[a*h.K+a]
		for j, b := range order[:i] {
			r[i*h.K+j] = r[min(a, b)*h.K+max(a, b)]
		}
	}
	for i, d := range diagonal {
		r[i*h.K+i] = d
		for j := range i {
			r[j*h.K+i] = r[i*h.K+j]
		}
	}
	return r
}

// divide extracts from R the unit rows and the squared diagonal.
func (f *Factor) divide(r []float64, unit []float32) {
	f.Loss, f.Unit = make([]float64, f.K), unit
	for i := range f.K {
		d := r[i*f.K+i]
		f.Loss[i] = d * d
		for j := i; j < f.K; j++ {
			f.Unit[i*f.K+j] = float32(r[i*f.K+j] / d)
		}
	}
}
