package verify

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Likelihood is by how much the probabilities of right classes drop: they move where accuracy stands still, and on few samples say
// more of others.
type Likelihood struct {
	Drop  float64 // on average
	Error float64 // of that, a standard error
}

// A fall is a Likelihood in the making: differences of as many samples.
type fall struct {
	sum, squares float64
	n            int
}

// add takes in what both models say of samples with labels, but of those that were seen; outputs without scores say nothing.
func (f *fall) add(want, got map[string]*ir.Array, order []string, labels []int64, seen func(int) bool) {
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

// of is nil where nothing was said.
func (f *fall) of() *Likelihood {
	if f.n == 0 {
		return nil
	}
	n := float64(f.n)
	mean := f.sum / n
	return &Likelihood{mean, math.Sqrt(max(0, f.squares/n-mean*mean) / n)}
}

// likelihoods are the probabilities of the labels, by the first of the outputs that has scores, a row for each.
func likelihoods(out map[string]*ir.Array, order []string, labels []int64) []float64 {
	for _, name := range order {
		a := out[name]
		if a == nil || a.Kind != ir.Dense || !a.DType.IsFloat() || len(best(a)) != len(labels) {
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

// Probabilities are those of a row of scores, or of logits, which are no such.
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
		p[i] = math.Exp(v - top)
		all += p[i]
	}
	for i := range p {
		p[i] /= all
	}
	return p
}
