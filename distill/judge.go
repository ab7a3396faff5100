package distill

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// A judge runs the model on the samples that are kept apart.
type judge struct {
	session *engine.Interpreter
	step    *step // its inputs and losses; it has no session of its own
	scores  string
	arena   int64
	batch   int
}

// A Verdict is what a judge says. Agree is the share of right classes, by the labels if there are some and by the
// teacher's largest scores if not; NaN where neither can be told.
type Verdict struct {
	Loss, Agree float64
}

// newJudge makes the graph of losses alone; nil if no samples are kept apart.
func (t *Trainer) newJudge(ctx context.Context, batch int) (_ *judge, err error) {
	if len(t.split.judge) < max(1, t.fixed) {
		return nil, nil
	}
	j := &judge{step: &step{feeds: map[string]*ir.Array{}}, batch: min(batch, len(t.split.judge))}
	tape, err := grad.New(ctx, t.model, grad.Options{Inputs: t.specs(j.batch), Train: t.trained, Change: t.changed(ctx, j.step.feeds)})
	if err != nil {
		return nil, err
	}
	t.followed(tape, j.step.feeds)
	tape.Close()
	for _, in := range t.ports {
		j.step.inputs = append(j.step.inputs, in.Name)
	}
	scale := tape.Input("scale", ir.Float)
	j.step.names.scale = scale.Name
	losses, _, targets, err := t.settings.add(tape, t.terms, scale)
	if err != nil {
		return nil, err
	}
	j.step.targets = targets
	for _, v := range losses {
		j.step.losses = append(j.step.losses, v.Name)
	}
	outputs := losses
	if v := tape.Value(scores(t.model.Graph.Outputs[0]).Name); v != nil {
		j.scores = v.Name
		outputs = append(outputs, v)
	}
	tape.Graph().SetOutputs(outputs...)
	for _, p := range tape.Params {
		j.step.feeds[p.Value.Name] = t.vars[p.Name].array
	}
	if j.session, err = engine.Open(ctx, tape.Model, engine.Options{Workers: t.workers}); err != nil {
		return nil, err
	}
	j.step.session = j.session
	j.arena, err = usage(j.session)
	return j, err
}

// judged runs the model on what is kept apart.
func (t *Trainer) judged(ctx context.Context) (v Verdict, err error) {
	right, all, batches := 0, 0, 0
	for b, err := range t.set.Batches(ctx, dataset.Order{Size: t.judge.batch, Index: t.whole(t.split.judge, t.judge.batch)}) {
		if err != nil {
			return v, err
		}
		targets, err := t.targets(ctx, t.judge.step, b, b.Inputs, t.split.judge[b.First:b.First+b.N])
		if err != nil {
			return v, err
		}
		loss, out, err := t.judge.step.run(ctx, b.Inputs, targets, numbers{scale: 1, parts: 1})
		if err != nil {
			return v, err
		}
		v.Loss += loss
		batches++
		r, n := agreement(out[t.judge.scores], b.Classes(), t.judge.step.targets, targets)
		right, all = right+r, all+n
	}
	v.Loss /= float64(max(1, batches))
	v.Agree = math.NaN()
	if all > 0 {
		v.Agree = float64(right) / float64(all)
	}
	return v, nil
}

// whole are the samples that fill batches.
func (t *Trainer) whole(samples []int, batch int) []int { return samples[:len(samples)/batch*batch] }

// agreement counts rows whose largest score is that of the label, or that of the teacher.
func agreement(y *ir.Array, classes []int64, targets []target, arrays []*ir.Array) (right, all int) {
	if y == nil || y.DType != ir.Float || len(y.Shape) < 2 {
		return 0, 0
	}
	want := classes
	for i, t := range targets {
		if want == nil && t.kind == "kl" {
			want = largest(arrays[i])
		}
	}
	got := largest(y)
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

// largest is the place of the largest element of each row.
func largest(a *ir.Array) []int64 {
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

func (j *judge) close() error {
	if j == nil || j.session == nil {
		return nil
	}
	return j.session.Close()
}
