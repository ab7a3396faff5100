package solve

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/blas"
)

// A Factor is what GPTQ needs of a Hessian: its upper Cholesky factor R in the order in which weights are rounded, last
// row first.
type Factor struct {
	K     int
	order []int     // the row of W at each place
	unit  []float32 // K×K: R with each row divided by its diagonal; below that nothing is looked at
	loss  []float64 // the diagonal of R, squared, by place
}

// FactorOptions say how a Hessian is made definite, and in which order weights are rounded.
type FactorOptions struct {
	// Damp is added to the diagonal, as a part of its mean.
	Damp float64
	// Block is how many rows share scales: they stay together.
	Block int
	// Order rounds blocks, and in them rows, with large diagonals first, while their errors can still be made up for; otherwise
	// rows come in their own order.
	Order bool
}

// errSingular says that there is no factor.
var errSingular = errors.New("the second moments of its inputs have no Cholesky factor: they hold infinities or NaN, or --damp is too small")

// Factor factors h, where it stands: H + damp·mean(diagonal)·I = RᵀR. Nothing but Reset is for h afterwards; the Factor is valid
// until then.
func (h *Hessian) Factor(o FactorOptions) (*Factor, error) {
	f := &Factor{K: h.K, order: h.order(o)}
	mean := h.mean()
	r := h.permute(f.order)
	for i := range h.K {
		r[i*h.K+i] += o.Damp * mean
		if mean == 0 {
			r[i*h.K+i] = 1 // nothing ever comes in: any rounding will do
		}
	}
	ok := blas.Cholesky(h.K, r, h.K)
	h.unit = grown(h.unit, h.K*h.K)
	f.divide(r, h.unit)
	if !ok || slices.ContainsFunc(f.loss, func(d float64) bool { return math.IsNaN(d) || math.IsInf(d, 0) }) {
		return nil, errSingular
	}
	return f, nil
}

// mean is that of the diagonal.
func (h *Hessian) mean() (mean float64) {
	for i := range h.K {
		mean += h.At(i, i) / float64(h.K)
	}
	return mean
}

// order is the row at each place: what comes last is rounded first.
func (h *Hessian) order(o FactorOptions) []int {
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

// permute brings rows and columns of H into order, by way of the lower triangle, which is free.
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

// divide takes from R what GPTQ reads.
func (f *Factor) divide(r []float64, unit []float32) {
	f.loss, f.unit = make([]float64, f.K), unit
	for i := range f.K {
		d := r[i*f.K+i]
		f.loss[i] = d * d
		for j := i; j < f.K; j++ {
			f.unit[i*f.K+j] = float32(r[i*f.K+j] / d)
		}
	}
}
