package verify

import (
	"context"
	"errors"
	"math"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// accuracyMetric is the metric that is measured wherever the data and the outputs have classes.
const accuracyMetric = "top1"

// openMetrics starts the measurement of accuracy and of the chosen metric.
func (c *comparison) openMetrics() error {
	accuracy, err := metric.Parse(accuracyMetric)
	if err != nil {
		return err
	}
	if c.accuracy, err = accuracy.New(); err != nil || c.Metric == nil {
		return err
	}
	c.metric, err = c.Metric.New()
	return err
}

// addMetrics accumulates the metrics of a batch.
func (c *comparison) addMetrics(batch *dataset.Batch, want, got map[string]*ir.Array) error {
	b := &metric.Batch{
		Inputs: batch.Inputs, Want: want, Got: got, Outputs: c.scoreOutputs(), Labels: batch.Labels, Targets: batch.Targets, First: batch.First, N: batch.N,
	}
	if c.single {
		b.Want = nil
	}
	ctx := context.Background()
	if labels := batch.Classes(); labels != nil && c.accuracy != nil {
		var none *metric.Inapplicable
		switch err := c.accuracy.Add(ctx, b); {
		case errors.As(err, &none):
			c.accuracy = nil
		case err != nil:
			return err
		}
		c.drop.add(want, got, c.scoreOutputs(), labels, func(i int) bool { return c.Fitted[batch.First+i] })
		if c.Counted != nil && c.accuracy != nil {
			n, err := countOf(b)
			if err != nil {
				return err
			}
			if err := c.Counted(n); err != nil {
				return err
			}
		}
	}
	if c.metric == nil {
		return nil
	}
	return c.metric.Add(ctx, b)
}

// countOf counts the labels of a batch.
func countOf(b *metric.Batch) (Count, error) {
	before, _, err := metric.Correct(b, b.Want)
	if err != nil {
		return Count{}, err
	}
	after, labels, err := metric.Correct(b, b.Got)
	return Count{labels, before, after}, err
}

// measured adds the metrics to the result.
func (c *comparison) measured(ctx context.Context, r *verification.Result) error {
	if c.accuracy != nil && c.set.Labelled() {
		s, err := c.accuracy.Score(ctx)
		if err != nil {
			return err
		}
		if !math.IsNaN(s.After) {
			r.Accuracy = &verification.Accuracy{Before: rounded(s.Before, 9), After: *rounded(s.After, 9), Error: s.Error, Likelihood: c.drop.of()}
		}
	}
	if c.metric == nil {
		return nil
	}
	s, err := c.metric.Score(ctx)
	if err != nil {
		return err
	}
	r.Metric = &verification.Metric{
		Name: s.Name, HigherIsBetter: s.HigherIsBetter, Before: rounded(s.Before, 9), After: rounded(s.After, 9), Error: rounded(s.Error, 9), Single: c.single,
	}
	return nil
}

// close releases temporary files of metrics.
func (c *comparison) close() {
	if c.metric != nil {
		c.metric.Close()
	}
}
