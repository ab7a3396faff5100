package verify

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// openMetrics starts the measurement of accuracy, which is measured wherever the data and the outputs have classes,
// and of the chosen metric.
func (c *comparison) openMetrics() (err error) {
	if c.accuracy = metric.NewAccuracy(); c.Metric == nil {
		return nil
	}
	c.metric, err = c.Metric.New()
	return err
}

// addMetrics accumulates the metrics of a batch.
func (c *comparison) addMetrics(batch *dataset.Batch, want, got map[string]*ir.Array) error {
	b := &metric.Batch{
		Inputs: batch.Inputs, Want: want, Got: got, Outputs: ScoreOutputs(c.Scores, c.names), Labels: batch.Labels,
		Targets: batch.Targets, First: batch.First, N: batch.N,
	}
	if c.single {
		// Recorded outputs are no reference of a metric: only the model itself is measured.
		b.Want = nil
	}
	if labels := batch.Classes(); labels != nil && c.accuracy != nil {
		if err := c.addAccuracy(b); err != nil {
			return err
		}
		c.drop.add(want, got, b.Outputs, labels, func(i int) bool { return c.Fitted[batch.First+i] })
		for _, label := range labels {
			if label >= 0 {
				c.labels[label]++
			}
		}
	}
	if c.metric == nil {
		return nil
	}
	return c.metric.Add(context.Background(), b)
}

// addAccuracy accumulates the accuracy of a batch. It is not measured any more once a batch has no classes.
func (c *comparison) addAccuracy(b *metric.Batch) error {
	n, err := c.accuracy.Add(b)
	var none *metric.Inapplicable
	switch {
	case errors.As(err, &none):
		c.accuracy, c.inapplicability = nil, none.Why
		return nil
	case err != nil || c.Counted == nil:
		return err
	}
	return c.Counted(n)
}

// reportMetrics adds the metrics to the result.
func (c *comparison) reportMetrics(ctx context.Context, r *verification.Result) error {
	c.reportAccuracy(r)
	if c.metric == nil {
		return nil
	}
	s, err := c.metric.Score(ctx)
	if err != nil {
		return err
	}
	r.Metric = &verification.Metric{
		Name: s.Name, HigherIsBetter: s.HigherIsBetter, Before: rounded(s.Before, 9), After: rounded(s.After, 9),
		Error: rounded(s.Error, 9), Single: c.single,
	}
	return nil
}

// reportAccuracy adds the accuracy, or why there is none although the samples have labels.
func (c *comparison) reportAccuracy(r *verification.Result) {
	switch {
	case !c.set.Labelled():
		return
	case c.accuracy == nil:
		r.Unmeasured = c.inapplicability
		return
	case !c.set.Classified():
		r.Unmeasured = "the samples have no labels of one class each"
		return
	}
	s := c.accuracy.Score()
	if math.IsNaN(s.After) {
		r.Unmeasured = "all labels are negative, which do not count"
		return
	}
	r.Accuracy = &verification.Accuracy{Before: rounded(s.Before, 9), After: *rounded(s.After, 9), Error: s.Error,
		Likelihood: c.drop.likelihood()}
	// The fraction times the number is the count of the first model, up to rounding.
	if n, lost, gained := c.accuracy.Changed(); !c.single {
		r.Accuracy.Drop = verification.NewDrop(int64(n), int64(math.Round(s.Before*n)), int64(lost), int64(gained))
	}
	switch most := c.mostFrequent(); {
	case r.Accuracy.Before == nil:
	case s.Before == 0:
		r.Notes = append(r.Notes, verification.NothingCorrect)
	case s.Before <= most && len(c.labels) > 1:
		r.Notes = append(r.Notes, fmt.Sprintf("the first model classifies %s of the samples correctly, and naming the "+
			"most frequent class each time %s: check that labels are the numbers of its classes, from 0, and the preprocessing",
			verification.Percent(s.Before), verification.Percent(most)))
	}
}

// mostFrequent is the fraction of the labels that are of the most frequent class: the accuracy without a model.
func (c *comparison) mostFrequent() float64 {
	most, all := 0.0, 0.0
	for _, n := range c.labels {
		most, all = max(most, n), all+n
	}
	return most / all
}

// close releases temporary files of metrics.
func (c *comparison) close() {
	if c.metric != nil {
		c.metric.Close()
	}
}
