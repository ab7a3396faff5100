package distill

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// A loss is the mean over what it counts: samples, labels, or tokens without padding. A step of several micro-batches
// is that of its whole batch: the loss of each is weighted by the fraction of the step's count that the micro-batch
// has. Counts of all samples of a step are thus known before its first micro-batch.

// sampleCount returns how many of what a target counts sample i of a batch has.
func (t target) sampleCount(b *dataset.Batch, i int) (n float64) {
	switch {
	case t.kind == nextToken:
		if i < len(b.Targets) { // else the step reports that there are no tokens
			for _, next := range b.Targets[i] {
				if next != noToken {
					n++
				}
			}
		}
	case t.soft == nil:
		labels, err := t.head.labels(b)
		if err != nil {
			return 0 // reported by the step
		}
		size := len(labels) / max(1, b.N)
		for _, label := range labels[i*size:][:size] {
			if label != dataset.NoLabel {
				n++
			}
		}
	case t.keep != nil && b.Attended != nil:
		tokens := b.Attended.Shape[1]
		for _, k := range ir.View[float32](b.Attended)[int64(i)*tokens:][:tokens] {
			n += float64(k)
		}
		if losses[t.kind] == "CosineLoss" { // of the vectors of samples
			n = min(n, 1)
		}
	default:
		n = 1
	}
	return n
}

// errUncounted is the error of samples none of which has what a target counts: a loss of 0 that nothing can improve.
func (t target) errUncounted(samples, remedy string) error {
	what := "label"
	switch {
	case t.soft != nil:
		what = "token but padding"
	case t.kind == nextToken:
		what = "token after another one"
	}
	return fmt.Errorf("%s have no %s that counts for output %q: %s", samples, what, cmp.Or(t.output, t.student), remedy)
}

// varies reports whether samples may have different counts.
func (t target) varies() bool { return t.soft == nil || t.keep != nil }

// countsOf returns the counts of the targets of a step in a batch.
func (st *step) countsOf(b *dataset.Batch) []float64 {
	counts := make([]float64, len(st.targets))
	for k, t := range st.targets {
		for i := range b.N {
			counts[k] += t.sampleCount(b, i)
		}
	}
	return counts
}

// A counter has what samples count for the targets of steps in several micro-batches.
type counter struct {
	set      *dataset.Set // nil without data
	step     *step
	bySample map[int][]float64 // counts of targets
}

// read counts samples that were not counted before, in one pass over their labels and tokens.
func (c *counter) read(ctx context.Context, samples []int) error {
	if c.set == nil || !slices.ContainsFunc(c.step.targets, target.varies) {
		return nil
	}
	var missing []int
	for _, s := range samples {
		if _, ok := c.bySample[s]; !ok {
			c.bySample[s] = nil
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for b, err := range c.set.Countable().Batches(ctx, dataset.Order{Size: readBatch, Index: missing, Reuse: true}) {
		if err != nil {
			return fmt.Errorf("labels and tokens of the samples: %w", err)
		}
		for i, s := range missing[b.First : b.First+b.N] {
			counts := make([]float64, len(c.step.targets))
			for k, t := range c.step.targets {
				counts[k] = t.sampleCount(b, i)
			}
			c.bySample[s] = counts
		}
	}
	return nil
}

// readBatch is the number of samples that are read at a time outside of steps.
const readBatch = 64

// total returns the counts of a step on these samples.
func (c *counter) total(samples []int) []float64 {
	sum := make([]float64, len(c.step.targets))
	for _, s := range samples {
		counts := c.bySample[s]
		for k := range sum {
			if counts == nil {
				sum[k]++ // all samples count alike
			} else {
				sum[k] += counts[k]
			}
		}
	}
	return sum
}

// shares returns the fractions of the counts of a step that a micro-batch has.
func shares(own, step []float64) []float64 {
	out := make([]float64, len(own))
	for k, n := range own {
		// 0 of a step without any: its loss and gradient are 0, not NaN.
		if n > 0 {
			out[k] = n / step[k]
		}
	}
	return out
}
