package verify

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// A likelihoodDrop accumulates a Likelihood: differences of probabilities of n samples.
type likelihoodDrop struct {
	sum, squares float64
	n            int
}

// add accumulates samples with labels, without those that were fitted to; outputs without scores add nothing.
func (f *likelihoodDrop) add(want, got map[string]*ir.Array, order []string, labels []int64, seen func(int) bool) {
	before, after := likelihoods(want, order, labels), likelihoods(got, order, labels)
	for i := range min(len(before), len(after)) {
		if seen(i) {
			continue
		}
		d := before[i] - after[i]
		f.sum += d
		f.squares += float64(d * d)
		f.n++
	}
}

// likelihood is nil without samples.
func (f *likelihoodDrop) likelihood() *verification.Likelihood {
	if f.n == 0 {
		return nil
	}
	n := float64(f.n)
	mean := f.sum / n
	return &verification.Likelihood{Drop: mean, Error: math.Sqrt(max(0, f.squares/n-mean*mean) / n)}
}

// likelihoods are the probabilities of the labels, by the first output with a row of scores for each.
func likelihoods(out map[string]*ir.Array, order []string, labels []int64) []float64 {
	for _, name := range order {
		a := out[name]
		if a == nil || a.Kind != ir.Dense || !a.DType.IsFloat() || len(metric.Top1(a)) != len(labels) {
			continue
		}
		var ps []float64
		rows := slices.Collect(slices.Chunk(all(a), int(a.Shape[len(a.Shape)-1])))
		for i, row := range rows {
			p := 0.0
			if label := labels[i]; label >= 0 && label < int64(len(row)) {
				p = Probabilities(row)[label]
			}
			ps = append(ps, p)
		}
		return ps
	}
	return nil
}

// Probabilities is a row of scores as it is where it sums to 1, else its softmax.
func Probabilities(row []float64) []float64 {
	sum := 0.0
	for _, v := range row {
		sum += v
	}
	if slices.Min(row) >= 0 && math.Abs(sum-1) < 1e-3 {
		return row
	}
	p, top, all := make([]float64, len(row)), slices.Max(row), 0.0
	for i, v := range row {
		// Without the largest score subtracted the exponential of large scores overflows.
		p[i] = math.Exp(v - top)
		all += p[i]
	}
	for i := range p {
		p[i] /= all
	}
	return p
}
