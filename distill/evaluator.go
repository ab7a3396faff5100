package distill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
)

// An evaluator runs the model on the validation set. Its step computes the losses only.
type evaluator struct {
	*step
	scoredOutputs []scoreOutput // outputs with class scores
	measure       *measurement
	batch         int
	samples       []int      // as many as fill batches
	rest          *evaluator // of the others, which are one smaller batch; nil if there are none
}

// A scoreOutput value has class scores that are compared with labels, or with the scores of a teacher.
type scoreOutput struct {
	name   string
	head   head
	target int // of the teacher's scores; -1 for labels
}

// An evaluation is a result on the validation set. Agreement is the fraction of samples, or of labels or tokens, whose
// largest score is that of the label, or that of the teacher without labels; NaN without class scores. Metric is nil if
// the options have none.
type evaluation struct {
	loss, agreement float64
	metric          *metric.Score
}

// evaluator builds the graph of the losses alone; nil without a validation set.
func (b *graphBuilder) evaluator(ctx context.Context, batch int) (_ *evaluator, err error) {
	return b.evaluatorOf(ctx, b.loader.validation, batch)
}

// evaluatorOf builds the graph of the losses of these samples; nil without any.
func (b *graphBuilder) evaluatorOf(ctx context.Context, samples []int, batch int) (_ *evaluator, err error) {
	if len(samples) == 0 {
		return nil, nil
	}
	e := &evaluator{step: &step{feeds: map[string]*ir.Array{}, inputs: b.loader.inputNames()},
		batch: min(batch, len(samples)), measure: b.measure}
	// Shapes of a graph are fixed: the samples that do not fill a batch have a graph of their own. Without it up to half
	// of a small validation set was left out.
	whole := len(samples) / e.batch * e.batch
	e.samples = samples[:whole]
	if e.rest, err = b.evaluatorOf(ctx, samples[whole:], batch); err != nil {
		return nil, err
	}
	tape, err := grad.New(ctx, b.model, grad.Options{
		Inputs: b.loader.specs(e.batch), Train: b.params.trainable, Change: b.evaluationChange(ctx, e.step),
		Append: b.features.ofStudent(),
	})
	if err != nil {
		return nil, err
	}
	b.params.feedStats(tape, e.step.feeds)
	tape.Close()
	losses, _, targets, err := b.settings.addLosses(tape, b.terms, int64(e.batch), b.loader.tokens)
	if err != nil {
		return nil, err
	}
	e.step.setLosses(losses, targets)
	outputs, err := b.measure.outputsOf(tape, b.model.Graph, b.settings.Scores)
	if err != nil {
		return nil, err
	}
	outputs = append(outputs, losses...)
	for _, s := range b.scoreOutputs(targets) {
		v := tape.Value(s.name)
		if v == nil || len(tape.Shape(v)) < 2 {
			continue
		}
		s.name = v.Name
		e.scoredOutputs = append(e.scoredOutputs, s)
		if !slices.Contains(outputs, v) {
			outputs = append(outputs, v)
		}
	}
	tape.Graph().SetOutputs(outputs...)
	for _, p := range tape.Params {
		e.step.feeds[p.Value.Name] = b.params.byName[p.Name].array
	}
	e.model = tape.Model
	return e, nil
}

// scoreOutputs returns the outputs that labels belong to; without labels those that are compared with the scores of a
// teacher.
func (b *graphBuilder) scoreOutputs(targets []target) (list []scoreOutput) {
	if b.settings.Loss == noLoss {
		return nil
	}
	for _, h := range b.heads {
		list = append(list, scoreOutput{h.scores, h, -1})
	}
	for i, t := range targets {
		if t.kind == "kl" && len(b.heads) == 0 {
			list = append(list, scoreOutput{t.student, head{axis: -1}, i})
		}
	}
	return list
}

// evaluate evaluates the model on the validation set.
func (e *evaluator) evaluate(ctx context.Context, l *loader, ts *teachers) (v evaluation, err error) {
	t := tally{sums: make([]float64, len(e.step.targets)), counts: make([]float64, len(e.step.targets))}
	scorer, err := e.measure.newScorer()
	if err != nil {
		return v, err
	}
	if scorer != nil {
		defer func() { err = errors.Join(err, scorer.Close()) }()
	}
	for part := e; part != nil; part = part.rest {
		if err := part.evaluateSamples(ctx, l, ts, scorer, &t); err != nil {
			return v, err
		}
	}
	for k, sum := range t.sums {
		if t.counts[k] == 0 {
			return v, e.step.targets[k].errUncounted(fmt.Sprintf("the %d samples of the validation set", len(l.validation)),
				"use another --validate or --seed")
		}
		// A mean over all that counts, not of the means of batches, in which the last and smaller one would weigh more.
		v.loss += sum / t.counts[k]
	}
	v.agreement = math.NaN()
	if t.all > 0 {
		v.agreement = float64(t.right) / float64(t.all)
	}
	v.metric, err = e.measure.finish(ctx, scorer)
	return v, err
}

// A tally is the sums of an evaluation.
type tally struct {
	sums, counts []float64 // of each loss, times what it counts
	right, all   int       // of agreement
}

// evaluateSamples evaluates the samples of e without the rest.
func (e *evaluator) evaluateSamples(ctx context.Context, l *loader, ts *teachers, scorer metric.Scorer,
	to *tally) error {
	for b, err := range l.batches(ctx, e.samples, e.batch, nil) {
		if err != nil {
			return err
		}
		targets, err := ts.targets(ctx, e.step.targets, b, e.samples[b.First:b.First+b.N])
		if err != nil {
			return err
		}
		losses, out, err := e.step.run(ctx, b, targets, hyperparameters{lossScale: 1})
		if err != nil {
			return err
		}
		// The loss of a batch is a mean: times its count it can be added.
		for k, n := range e.step.countsOf(b) {
			to.sums[k] += losses[k] * n
			to.counts[k] += n
		}
		for _, s := range e.scoredOutputs {
			right, all := s.agreement(b, out[s.name], e.step.targets, targets)
			to.right, to.all = to.right+right, to.all+all
		}
		if err := e.measure.addBatch(ctx, scorer, b, out); err != nil {
			return err
		}
	}
	return nil
}

// runnables are the graphs of e and of the rest of the samples; e may be nil.
func (e *evaluator) runnables() (all []*runnable) {
	for part := e; part != nil; part = part.rest {
		all = append(all, &part.runnable)
	}
	return all
}

// open opens the graphs, if there are any.
func (e *evaluator) open(ctx context.Context, o engine.Options) error {
	for _, g := range e.runnables() {
		if err := g.open(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// score orders evaluations; lower is better.
func (v evaluation) score() float64 {
	switch {
	case v.metric != nil:
		return lossOf(v.metric)
	case math.IsNaN(v.agreement):
		return v.loss
	}
	return 1 - v.agreement
}

// compare orders evaluations by score, then by loss: better ones first.
func (v evaluation) compare(w evaluation) int {
	return cmp.Or(cmp.Compare(v.score(), w.score()), cmp.Compare(v.loss, w.loss))
}

// agreement counts the rows of scores y of a batch, and those whose largest score is that of the label, or of the
// teacher. Rows without a label and padding do not count.
func (s scoreOutput) agreement(b *dataset.Batch, y *ir.Array, targets []target, arrays []*ir.Array) (right, all int) {
	got, counts := argMax(y, s.head.axis), func(int) bool { return true }
	var want []int64
	if s.target < 0 {
		want, _ = s.head.labels(b) // none if they are not classes
		// dataset.NoLabel is negative.
		counts = func(i int) bool { return want[i] >= 0 }
	} else {
		want = argMax(arrays[s.target], -1)
		if targets[s.target].keep != nil {
			counts = func(i int) bool { return ir.View[float32](b.Attended)[i] != 0 }
		}
	}
	if len(want) != len(got) {
		return 0, 0
	}
	for i := range got {
		if counts(i) {
			all++
			if got[i] == want[i] {
				right++
			}
		}
	}
	return right, all
}

// argMax returns the index of the largest element along an axis, nil for less than 2 elements.
func argMax(a *ir.Array, axis int64) []int64 {
	if axis < 0 {
		axis += int64(len(a.Shape))
	}
	n, inner := int(a.Shape[axis]), int(elems(a.Shape[axis+1:]))
	if n < 2 {
		return nil
	}
	x := ir.View[float32](a)
	out := make([]int64, len(x)/n)
	for i := range out {
		row := x[i/inner*n*inner+i%inner:]
		for k := range n {
			if row[k*inner] > row[int(out[i])*inner] {
				out[i] = int64(k)
			}
		}
	}
	return out
}

func (e *evaluator) close() error {
	var errs []error
	for _, g := range e.runnables() {
		errs = append(errs, g.close())
	}
	return errors.Join(errs...)
}
