package metric

import (
	"context"
	"math"
)

// groups is the number of groups of samples for standard errors.
const groups = 32

// A set is a metric of a set of samples, which is no mean of them. Statistics of type S are accumulated in groups of
// samples. The standard error is that of the delete-a-group jackknife on the difference of both models (Efron, The
// Jackknife, the Bootstrap and Other Resampling Plans, 1982): the metric is computed again without each of the groups.
type set[S any] struct {
	// of the outputs of one side; returns the function that adds sample i
	read  func(b *Batch, side int) (func(s *S, i int), error)
	value func(parts []*S) float64

	parts  [2][groups]S // of the reference and the model
	used   [groups]bool
	paired bool
}

// Add implements Scorer.
func (t *set[S]) Add(_ context.Context, b *Batch) error {
	t.paired = b.Want != nil
	for side, out := range b.sides() {
		if out == nil {
			continue
		}
		add, err := t.read(b, side)
		if err != nil {
			return err
		}
		for i := range b.N {
			// Data is often sorted by class: neighbours come into different groups.
			g := (b.First + i) % groups
			add(&t.parts[side][g], i)
			t.used[g] = true
		}
	}
	return nil
}

// Score implements Scorer.
func (t *set[S]) Score(context.Context) (Score, error) {
	s := Score{Before: math.NaN(), After: t.valueWithout(1, -1), Error: math.NaN()}
	if !t.paired {
		return s, nil
	}
	s.Before = t.valueWithout(0, -1)
	var diffs []float64
	for g, used := range t.used {
		if used {
			diffs = append(diffs, t.valueWithout(1, g)-t.valueWithout(0, g))
		}
	}
	s.Error = jackknife(diffs)
	return s, nil
}

// valueWithout is the metric of one model without a group.
func (t *set[S]) valueWithout(side, group int) float64 {
	var parts []*S
	for g := range t.parts[side] {
		if t.used[g] && g != group {
			parts = append(parts, &t.parts[side][g])
		}
	}
	return t.value(parts)
}

// jackknife is the standard error of an estimate by its values without each of the groups, NaN for less than two.
func jackknife(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return math.NaN()
	}
	mean := 0.0
	for _, v := range values {
		mean += v / n
	}
	sum := 0.0
	for _, v := range values {
		sum += float64((v - mean) * (v - mean))
	}
	return math.Sqrt((n - 1) / n * sum)
}

// Close implements Scorer.
func (t *set[S]) Close() error { return nil }
