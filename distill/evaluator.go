package distill

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
)

// An evaluator runs the model on the validation set. Its step computes the losses only.
type evaluator struct {
	*step
	scores  string // output with class scores; empty if there is none
	measure *measurement
	batch   int
	samples []int // as many as fill batches
}

// An evaluation is a result on the validation set. Agreement is the fraction of samples whose largest score is that of the label, or that of
// the teacher without labels; NaN without class scores. Metric is nil if the options have none.
type evaluation struct {
	loss, agreement float64
	metric          *metric.Score
}

// evaluator builds the graph of the losses alone; nil without a validation set.
func (b *graphBuilder) evaluator(ctx context.Context, batch int) (_ *evaluator, err error) {
	validation := b.loader.validation
	if len(validation) < max(1, b.loader.fixedBatch) {
		return nil, nil
	}
	e := &evaluator{step: &step{feeds: map[string]*ir.Array{}, inputs: b.loader.inputNames()}, batch: min(batch, len(validation)), measure: b.measure}
	e.samples = validation[:len(validation)/e.batch*e.batch]
	tape, err := grad.New(ctx, b.model, grad.Options{
		Inputs: b.loader.specs(e.batch), Train: b.params.trainable, Change: b.evaluationChange(ctx, e.step), Append: b.features.ofStudent(),
	})
	if err != nil {
		return nil, err
	}
	b.params.feedStats(tape, e.step.feeds)
	tape.Close()
	scale := tape.Input("scale", ir.Float)
	e.step.names.scale = scale.Name
	losses, _, targets, err := b.settings.addLosses(tape, b.terms, scale)
	if err != nil {
		return nil, err
	}
	e.step.setLosses(losses, targets)
	outputs, err := b.measure.outputsOf(tape, b.model.Graph, b.settings.Scores)
	if err != nil {
		return nil, err
	}
	outputs = append(outputs, losses...)
	if v := tape.Value(scores(b.model.Graph.Outputs[0]).Name); v != nil && b.settings.Loss != noLoss {
		e.scores = v.Name
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

// run evaluates the model on the validation set.
func (e *evaluator) run(ctx context.Context, l *loader, t *teachers) (v evaluation, err error) {
	right, all, batches := 0, 0, 0
	scorer, err := e.measure.start()
	if err != nil {
		return v, err
	}
	if scorer != nil {
		defer func() { err = errors.Join(err, scorer.Close()) }()
	}
	for b, err := range l.batches(ctx, e.samples, e.batch, nil) {
		if err != nil {
			return v, err
		}
		targets, err := t.targets(ctx, e.step.targets, b, b.Inputs, e.samples[b.First:b.First+b.N])
		if err != nil {
			return v, err
		}
		loss, out, err := e.step.run(ctx, b.Inputs, targets, hyperparameters{lossScale: 1, microBatches: 1})
		if err != nil {
			return v, err
		}
		v.loss += loss
		batches++
		r, n := agreement(out[e.scores], b.Classes(), e.step.targets, targets)
		right, all = right+r, all+n
		if err := e.measure.add(ctx, scorer, b, out); err != nil {
			return v, err
		}
	}
	v.loss /= float64(max(1, batches))
	v.agreement = math.NaN()
	if all > 0 {
		v.agreement = float64(right) / float64(all)
	}
	v.metric, err = e.measure.finish(ctx, scorer)
	return v, err
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

// agreement counts the samples whose largest score is that of the label, or that of the teacher without labels.
func agreement(y *ir.Array, classes []int64, targets []target, arrays []*ir.Array) (right, all int) {
	if y == nil || y.DType != ir.Float || len(y.Shape) < 2 {
		return 0, 0
	}
	want := classes
	for i, t := range targets {
		if want == nil && t.kind == "kl" {
			want = argMax(arrays[i])
		}
	}
	got := argMax(y)
	if len(want) != len(got) {
		return 0, 0
	}
	for i := range got {
		if got[i] == want[i] {
			right++
		}
	}
	return right, len(got)
}

// argMax returns the index of the largest element of each row, nil for rows of less than 2 elements.
func argMax(a *ir.Array) []int64 {
	n := int(a.Shape[len(a.Shape)-1])
	if n < 2 {
		return nil
	}
	x := ir.View[float32](a)
	out := make([]int64, len(x)/n)
	for i := range out {
		for k, y := range x[i*n : (i+1)*n] {
			if y > x[i*n+int(out[i])] {
				out[i] = int64(k)
			}
		}
	}
	return out
}

func (e *evaluator) close() error {
	if e == nil {
		return nil
	}
	return e.step.close()
}
