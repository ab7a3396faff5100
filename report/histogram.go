package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

const (
	maxHistograms = 3  // weights with histograms
	halfBins      = 64 // bins on each side of zero
)

// A WeightHistogram is the distribution of the elements of a weight before and after, and of their differences.
type WeightHistogram struct {
	Tensor string    `json:"tensor"`
	Scope  string    `json:"scope"`
	Module string    `json:"module,omitempty"` // path of the module of the weight
	Before Histogram `json:"before"`
	After  Histogram `json:"after"` // in bins of the same width
	Error  Histogram `json:"error"` // of after - before
}

// A Histogram is the numbers of elements in bins of equal width, which is a power of two. NaN and infinite elements are
// in none.
type Histogram struct {
	Start  float64 `json:"start"` // of the first bin, which contains it
	Width  float64 `json:"width"`
	Counts []int64 `json:"counts"`
}

// A binner counts elements in bins from -halfBins to halfBins-1 times a width that doubles until all elements fit. Bins
// of half the width are merged exactly, so that the counts depend on the elements alone and not on their order.
type binner struct {
	exponent int // of the width
	counts   [2 * halfBins]int64
	zeros    int64 // before the first other element, which sets the width
	any      bool
}

func (b *binner) add(xs []float32) {
	scale, limit := math.Ldexp(1, -b.exponent), math.Ldexp(halfBins, b.exponent)
	// One pass of a vector kernel tells whether all elements fit, as those of nearly all blocks do. NaN and
	// infinity do not.
	if b.any && float64(math.Float32frombits(kernel.AbsMaxBits(xs))) < limit {
		b.count(xs, scale)
		return
	}
	for _, v := range xs {
		x := float64(v)
		switch {
		case x == 0 && !b.any:
			b.zeros++
			continue
		case x-x != 0: // NaN or infinite
			continue
		}
		for !b.any || x >= limit || x < -limit {
			b.widen(x)
			scale, limit = math.Ldexp(1, -b.exponent), math.Ldexp(halfBins, b.exponent)
		}
		b.counts[int(math.Floor(x*scale))+halfBins]++
	}
}

// count counts elements that fit and are finite.
func (b *binner) count(xs []float32, scale float64) {
	for _, v := range xs {
		// A remainder by a power of two instead of a bounds check; the elements fit.
		b.counts[uint(int(math.Floor(float64(v)*scale))+halfBins)%(2*halfBins)]++
	}
}

// widen doubles the width, or sets it for the first element.
func (b *binner) widen(x float64) {
	if !b.any {
		_, e := math.Frexp(x)
		b.any, b.exponent = true, e-7 // 2^(e-1) ≤ |x| and halfBins is 2^6: x fits no smaller width
		b.counts[halfBins] += b.zeros
		return
	}
	b.double()
}

func (b *binner) double() {
	var wide [2 * halfBins]int64
	for i, n := range b.counts {
		// An arithmetic shift: bins below zero are merged towards minus infinity, as Floor counts.
		wide[(i-halfBins)>>1+halfBins] += n
	}
	b.counts = wide
	b.exponent++
}

// histogram is the bins from the first to the last that has elements.
func (b *binner) histogram() Histogram {
	counts, exponent := b.counts, b.exponent
	if !b.any {
		counts[halfBins] = b.zeros
	}
	first, last := 0, len(counts)-1
	for first < last && counts[first] == 0 {
		first++
	}
	for first < last && counts[last] == 0 {
		last--
	}
	width := math.Ldexp(1, exponent)
	return Histogram{
		Start:  float64(first-halfBins)*width + 0,
		Width:  width,
		Counts: slices.Clone(counts[first : last+1]),
	}
}

// binners count the elements of both tensors of a pair, and their differences.
type binners struct {
	before, after, error binner
	differences          []float32
}

func (b *binners) add(before, after []float32) {
	b.differences = slices.Grow(b.differences[:0], len(before))[:len(before)]
	for i, v := range before {
		b.differences[i] = after[i] - v
	}
	b.before.add(before)
	b.after.add(after)
	b.error.add(b.differences)
}

// align gives before and after the same width.
func (b *binners) align() {
	for b.before.any && b.after.any && b.before.exponent != b.after.exponent {
		if b.before.exponent < b.after.exponent {
			b.before.double()
		} else {
			b.after.double()
		}
	}
}

// histograms are those of the weights with the lowest SQNR, which are read a second time. pairs are in the order of ws.
func histograms(ctx context.Context, in Input, ws []Weight, pairs []pair) ([]WeightHistogram, error) {
	var worst []int
	for i, w := range ws {
		// Tied weights have one histogram.
		if w.Error != nil && w.Error.SQNR != nil && !w.Error.Exact &&
			!slices.ContainsFunc(worst, func(k int) bool { return pairs[k] == pairs[i] }) {
			worst = append(worst, i)
			slices.SortStableFunc(
				worst,
				func(a, b int) int { return cmp.Compare(*ws[a].Error.SQNR, *ws[b].Error.SQNR) },
			)
			worst = worst[:min(len(worst), maxHistograms)]
		}
	}
	hs := make([]WeightHistogram, len(worst))
	err := pass.Parallel(ctx, in.Workers, len(worst), func(ctx context.Context, i int) error {
		w, b := &ws[worst[i]], &binners{}
		if _, err := compare(ctx, in.Eval, pairs[worst[i]], b); err != nil {
			return fmt.Errorf("report: tensor %q: %w", w.Tensor, err)
		}
		b.align()
		hs[i] = WeightHistogram{
			w.Tensor,
			w.Scope,
			w.Module,
			b.before.histogram(),
			b.after.histogram(),
			b.error.histogram(),
		}
		return nil
	})
	return hs, err
}
