package metric

import (
	"context"
	"math"
)

// A ratio is the contribution of a sample to a mean: value of weight labels.
type ratio struct{ value, weight float64 }

// A mean is a metric that is a ratio of sums over samples, with equal weights in both models. Its standard error is
// that of the ratio estimator (Cochran, Sampling Techniques, 1977, 6.3) on paired differences, from sums alone.
type mean struct {
	ratios func(b *Batch, out outputs) ([]ratio, error) // one for each sample

	before, after, weight    float64
	lost, gained             float64 // sums of what samples lose and gain
	diff2, product, weights2 float64 // sums of d², d·w and w² with the difference d of a sample
	paired                   bool
}

// Add implements Scorer.
func (m *mean) Add(_ context.Context, b *Batch) error {
	_, err := m.addBatch(b)
	return err
}

// addBatch accumulates a batch and returns its sums.
func (m *mean) addBatch(b *Batch) (n Count, err error) {
	got, err := m.ratios(b, b.Got)
	if err != nil {
		return Count{}, err
	}
	want := got
	if m.paired = b.Want != nil; m.paired {
		if want, err = m.ratios(b, b.Want); err != nil {
			return Count{}, err
		}
	}
	for i := range got {
		m.addSample(want[i].value, got[i].value, got[i].weight)
		n.Labels += got[i].weight
		n.Before += want[i].value
		n.After += got[i].value
	}
	return n, nil
}

// addSample accumulates a sample.
func (m *mean) addSample(before, after, weight float64) {
	// A sample without labels counts nowhere.
	if weight == 0 && before == 0 && after == 0 {
		return
	}
	d := after - before
	m.before += before
	m.after += after
	m.weight += weight
	m.lost += max(0, -d)
	m.gained += max(0, d)
	m.diff2 += float64(d * d)
	m.product += float64(d * weight)
	m.weights2 += float64(weight * weight)
}

// Score implements Scorer.
func (m *mean) Score(context.Context) (Score, error) { return m.score(), nil }

func (m *mean) score() Score {
	s := Score{Before: math.NaN(), After: m.after / m.weight, Error: math.NaN()}
	if m.paired {
		by := (m.after - m.before) / m.weight
		s.Before = m.before / m.weight
		// The sum of (d - by·w)², expanded; rounding may make it negative.
		s.Error = math.Sqrt(max(0, m.diff2-float64(2*by*m.product)+float64(by*by*m.weights2))) / m.weight
	}
	return s
}

// Close implements Scorer.
func (m *mean) Close() error { return nil }
