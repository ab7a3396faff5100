package distill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Course is what happened in training.
type Course struct {
	Loss   []pass.Point // mean of the steps since the last point
	Judged []pass.Point // on samples kept apart
	Agree  []pass.Point
	Kept   int // the step whose weights were kept
	Memory Memory
}

// state is what training goes on from.
type state struct {
	Step    int // done
	Bad     int // epochs in a row that were not better
	Best    float64
	BestAt  int
	Scale   float64 // of the loss
	Good    int     // steps in a row without overflow
	Sum     float64 // of losses since the last point
	Count   int
	Course  Course
	stopped bool
}

// perEpoch is the number of steps that go through all samples.
func (t *Trainer) perEpoch() int { return len(t.split.learn) / t.layout.batch }

// total is the number of steps.
func (t *Trainer) total() int {
	if t.settings.steps > 0 {
		return t.settings.steps
	}
	return t.epochs * t.perEpoch()
}

// train runs the course from where the state is.
func (t *Trainer) train(ctx context.Context) error {
	if t.state.Scale == 0 {
		t.state.Scale, t.state.Best = 1, math.MaxFloat64
		if t.layout.half {
			t.state.Scale = firstScale
		}
	}
	if t.state.Step == 0 && t.reinit < 0 {
		if err := t.closeEpoch(ctx); err != nil {
			return err
		}
	}
	for t.state.Step < t.total() && !t.state.stopped {
		if err := t.epoch(ctx); err != nil {
			return err
		}
	}
	return t.restore()
}

// firstScale is the loss scale that training begins with where activations are kept in 16 bits.
const firstScale = 1 << 10

// epoch goes on through the epoch in which the state is, to its end.
func (t *Trainer) epoch(ctx context.Context) error {
	n := t.perEpoch()
	epoch, done := t.state.Step/n, t.state.Step%n
	order := rand.New(rand.NewPCG(t.seed, uint64(epoch))).Perm(len(t.split.learn))
	index := make([]int, 0, len(order))
	for _, i := range order[done*t.layout.batch : n*t.layout.batch] {
		index = append(index, t.split.learn[i])
	}
	if left := (t.total() - t.state.Step) * t.layout.batch; left < len(index) {
		index = index[:left]
	}
	if err := t.batches(ctx, index); err != nil {
		return err
	}
	if t.state.Step%n == 0 || t.state.Step == t.total() {
		if err := t.closeEpoch(ctx); err != nil {
			return err
		}
	}
	return t.saved(t.state.Step%n == 0 && t.every == 0 || t.state.Step == t.total())
}

// batches runs a step for every batch of samples.
func (t *Trainer) batches(ctx context.Context, index []int) error {
	part, losses := 0, 0.0
	for b, err := range t.set.Batches(ctx, dataset.Order{Size: t.layout.part(), Index: index}) {
		if err != nil {
			return err
		}
		loss, err := t.part(ctx, b, index[b.First:b.First+b.N], part)
		if err != nil {
			return err
		}
		losses += loss / float64(t.layout.parts)
		if part++; part < t.layout.parts {
			continue
		}
		if err := t.stepped(ctx, losses); err != nil {
			return err
		}
		part, losses = 0, 0
		if err := t.saved(t.every > 0 && t.state.Step%t.every == 0); err != nil {
			return err
		}
	}
	return nil
}

// now are the numbers of the step that runs.
func (t *Trainer) now() numbers {
	return numbers{rate: t.rateAt(t.state.Step, t.total()), decay: t.decay, step: t.state.Step + 1, scale: t.state.Scale, parts: t.layout.parts}
}

// part runs one part of a batch.
func (t *Trainer) part(ctx context.Context, b *dataset.Batch, samples []int, part int) (float64, error) {
	if part == 0 {
		if err := t.round(ctx); err != nil {
			return 0, err
		}
	}
	in, err := t.augment.apply(ctx, b.Inputs, t.state.Step*t.layout.parts+part)
	if err != nil {
		return 0, err
	}
	targets, err := t.targets(ctx, t.step, b, in, samples)
	if err != nil {
		return 0, err
	}
	n := t.now()
	loss, out, err := t.step.run(ctx, in, targets, n)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, t.broken(t.state.Step+1, "the loss", loss)
	}
	if t.step.names.total != "" {
		t.scaled(float64(ir.View[float32](out[t.step.names.total])[0]))
	}
	return loss, nil
}

// broken is the error of a loss that is no number: the data's fault, or the model's, where nothing was learned yet.
func (t *Trainer) broken(step int, what string, loss float64) error {
	if step == 0 {
		return fmt.Errorf("%s is %v before the first step: check the data and the model for NaN and infinite values", what, loss)
	}
	hint := "try a smaller --lr or --clip 1"
	if t.save != "" {
		hint += "; the last checkpoint is in " + t.save
	}
	return fmt.Errorf("step %d: %s is %v: %s", step, what, loss, hint)
}

// targets are what the terms of a step compare with.
func (t *Trainer) targets(ctx context.Context, st *step, b *dataset.Batch, in map[string]*ir.Array, samples []int) ([]*ir.Array, error) {
	said, err := t.teacher.says(ctx, in, samples)
	if err != nil {
		return nil, err
	}
	out := make([]*ir.Array, len(st.targets))
	for i, target := range st.targets {
		if target.teacher != "" {
			out[i] = said[target.teacher]
			continue
		}
		classes := b.Classes()
		if classes == nil {
			return nil, errors.New("the labels are not classes; cross-entropy requires one integer per sample")
		}
		out[i] = ir.ArrayOf(classes, int64(len(classes)))
	}
	return out, nil
}

// stepped ends a step.
func (t *Trainer) stepped(ctx context.Context, loss float64) error {
	if t.update != nil {
		total, err := t.update.run(ctx, t.now())
		if err != nil {
			return err
		}
		t.scaled(total)
	}
	s := &t.state
	s.Step++
	s.Sum, s.Count = s.Sum+loss, s.Count+1
	if s.Count >= max(1, t.total()/mostPoints) || s.Step == t.total() {
		s.Course.Loss = append(s.Course.Loss, pass.Point{Step: s.Step, Y: s.Sum / float64(s.Count)})
		s.Sum, s.Count = 0, 0
	}
	if t.tell != nil {
		t.tell(s.Step, t.total(), loss)
	}
	return ctx.Err()
}

// mostPoints bounds the length of the curve.
const mostPoints = 120

// scaled changes the loss scale by how a step went, whose gradients' squares have this sum: an overflow left the
// weights as they were.
func (t *Trainer) scaled(squares float64) {
	s := &t.state
	if s.Scale == 1 && !t.layout.half {
		return
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		s.Scale, s.Good = max(1, s.Scale/2), 0
		return
	}
	if s.Good++; s.Good >= 1000 {
		s.Scale, s.Good = min(s.Scale*2, 1<<24), 0
	}
}

// closeEpoch judges the weights as they would be rounded now, and takes note of the best ones. The judge's memory takes the place of
// the step's.
func (t *Trainer) closeEpoch(ctx context.Context) error {
	if t.state.Step > 0 {
		if err := t.rehearse(ctx); err != nil {
			return err
		}
	}
	if err := t.round(ctx); err != nil {
		return err
	}
	if t.judge == nil {
		return nil
	}
	t.step.session.Free()
	v, err := t.judged(ctx)
	t.judge.session.Free()
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	s := &t.state
	if math.IsNaN(v.Loss) || math.IsInf(v.Loss, 0) {
		return t.broken(s.Step, "the validation loss", v.Loss)
	}
	if s.Step > 0 {
		s.Course.Judged = append(s.Course.Judged, pass.Point{Step: s.Step, Y: v.Loss})
		if !math.IsNaN(v.Agree) {
			s.Course.Agree = append(s.Course.Agree, pass.Point{Step: s.Step, Y: v.Agree})
		}
	}
	if better := t.score(v); better < s.Best {
		s.Best, s.BestAt, s.Bad = better, s.Step, 0
		return t.remember(t.bestFile())
	}
	s.Bad++
	s.stopped = t.patience > 0 && s.Bad >= t.patience
	return nil
}

// score is what makes one verdict better than another: the smaller, the better. Ties of right answers are
// settled by the loss.
func (t *Trainer) score(v Verdict) float64 {
	if math.IsNaN(v.Agree) {
		return v.Loss
	}
	return 1 - v.Agree + 1e-6*math.Tanh(v.Loss)
}

// each calls f for all that a model is trained to.
func (t *Trainer) each(f func(a *ir.Array) error) error {
	for _, v := range t.order {
		if err := f(v.array); err != nil {
			return err
		}
	}
	for _, m := range t.moments {
		if err := f(m.array); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps a copy of the weights, on disk.
func (t *Trainer) remember(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return t.each(func(a *ir.Array) error {
		_, err := f.Write(a.Data)
		return err
	})
}

// restore goes back to the best weights.
func (t *Trainer) restore() error {
	t.state.Course.Kept = t.state.Step
	if t.judge == nil || t.state.BestAt == t.state.Step {
		return nil
	}
	t.state.Course.Kept = t.state.BestAt
	return t.recall(t.bestFile())
}

// recall goes back to a copy of the weights.
func (t *Trainer) recall(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.each(func(a *ir.Array) error {
		_, err := io.ReadFull(f, a.Data)
		return err
	})
}

func (t *Trainer) bestFile() string { return filepath.Join(t.folder, "best") }
