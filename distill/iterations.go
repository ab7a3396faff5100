package distill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An iterations is the pruning steps of one method, with the training after each, and their history.
type iterations struct {
	step     *pass.Step
	options  FineTune // of the next training
	repeats  bool     // later trainings have the learning rate of the first one
	rewind   *rewinding
	movement importance

	trainings int
	elements  map[*ir.Value]int64 // of the weights that were pruned, before the first step
	history   pass.Training
	total     pass.Progress // of the trainings that ended, together
}

// newIterations returns the iterations of a step, with these options of each training.
func newIterations(step *pass.Step, o FineTune) *iterations {
	it := &iterations{step: step, options: o, elements: map[*ir.Value]int64{}}
	it.history.Method = step.Method
	it.openOnce()
	return it
}

// openOnce lets all trainings share a teacher.
func (it *iterations) openOnce() {
	open, opened := it.step.Env.Open, map[string]*ir.Model{}
	if open == nil {
		return
	}
	it.step.Env.Open = func(path string) (*ir.Model, error) {
		if m := opened[path]; m != nil {
			return m, nil
		}
		m, err := open(path)
		opened[path] = m
		return m, err
	}
}

// firstStep returns the first of n pruning steps: a dry run has the last one alone, as nothing is trained.
func (it *iterations) firstStep(n int) int {
	if it.step.Env.DryRun {
		return n
	}
	return 1
}

// prune runs a pruning method, nil for none, and rewinds the weights that are left.
func (it *iterations) prune(ctx context.Context, method pass.Options) error {
	if method == nil {
		return it.rewind.restore(ctx, it.step, it.prunedNames())
	}
	// Methods replace the tensor of what they prune; the number of elements is kept from before the first step, for the
	// amount.
	before := map[*ir.Value]*ir.Tensor{}
	for _, v := range pass.Weights(it.step.Model) {
		before[v] = v.Const
	}
	if err := method.Run(ctx, it.step); err != nil {
		return err
	}
	for v, t := range before {
		if _, ok := it.elements[v]; !ok && v.Const != t {
			it.elements[v] = t.Elems()
		}
	}
	return it.rewind.restore(ctx, it.step, it.prunedNames())
}

// prunedNames are the names of the weights with pruned elements: by the metadata of the model, and by the steps so far.
func (it *iterations) prunedNames() map[string]bool {
	names := pass.PrunedWeights(it.step.Model)
	for v, n := range it.elements {
		if !v.Removed() && v.Const.Elems() == n { // else channels were removed
			names[v.Name] = true
		}
	}
	return names
}

// amount returns the fraction of the elements of pruned weights that are zero or were removed.
func (it *iterations) amount(ctx context.Context) (float64, error) {
	all, left := int64(0), int64(0)
	// By the masks: weights keep their values under them until the end.
	for _, w := range it.movement {
		for _, keep := range ir.View[float32](w.mask) {
			all, left = all+1, left+int64(keep)
		}
	}
	for v, n := range it.elements {
		all += n
		if v.Removed() {
			continue
		}
		// Pruned weights that are not trained, such as float16 behind Cast, are not float32.
		err := pass.Scan(ctx, it.step.Eval, v.Const, func(x []float32, _ int64) error {
			for _, w := range x {
				if w != 0 {
					left++
				}
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("tensor %q: %w", v.Name, err)
		}
	}
	return float64(all-left) / float64(max(1, all)), nil
}

// train trains the model. The last training records the samples.
func (it *iterations) train(ctx context.Context, last bool) (err error) {
	if it.options.Path == "" {
		return pass.OptionErrorf("training samples are missing; use --data")
	}
	s := newSettings(it.options, it.step.Method, automatic)
	s.prunes, s.pruned, s.rewind, s.movement = true, it.prunedNames(), it.rewind, it.movement
	if s.Save != "" {
		// Each training resumes from a checkpoint of its own: those that ended are not repeated.
		s.Save = fmt.Sprintf("%s.%d", s.Save, it.trainings)
	}
	it.trainings++
	// The selection is that of pruning: weights that are not pruned are trained as well, or they could not compensate.
	unselected := *it.step
	unselected.Select = pass.Selection{}
	t, err := newStepTrainer(&unselected, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	t.progress.notify = it.progress(last)
	if err := t.runStep(ctx, it.step); err != nil {
		return err
	}
	if last {
		t.loader.recordSamples(it.step)
	}
	if it.step.Env.DryRun {
		t.params.store(it.step, true)
		return nil
	}
	// Before store, which takes the arrays as they are: readEarly restores the best weights into them.
	if err := it.rewind.readEarly(t.validation, t.state.Total, t.steps.data.stepsPerEpoch()); err != nil {
		return err
	}
	t.params.store(it.step, t.state.hasImproved())
	if it.options.Reinit != nil {
		// Only the first training starts from random weights; statistics are updated as in training from scratch in all
		// of them.
		it.options.Reinit, it.options.BatchStatistics = nil, true
	}
	if it.repeats {
		// That of the first training, with its schedule (Renda et al., Comparing Rewinding and Fine-tuning, 2020).
		it.options.LR = t.state.LR
	}
	return it.record(ctx, t)
}

// record adds a training to the history.
func (it *iterations) record(ctx context.Context, t *trainer) error {
	amount, err := it.amount(ctx)
	if err != nil {
		return err
	}
	h, all := t.report(it.step.Method), &it.history
	first := all.Steps
	if len(all.Pruning) == 0 {
		all.TrainingMemory, all.Chosen, all.Outputs = h.TrainingMemory, h.Chosen, h.Outputs
		if !it.repeats { // each training has a learning rate of its own
			all.Chosen = slices.DeleteFunc(slices.Clone(h.Chosen), func(c pass.Setting) bool { return c.Option == "lr" })
		}
	}
	before := t.state.First // steps of the first training that this one does not repeat
	p := pass.PruningStep{Step: first, Amount: amount, Kept: first + h.Kept - before, LR: t.state.LR}
	p.Loss, p.Accuracy, p.Metric = pointAt(h.ValidationLoss, h.Kept), pointAt(h.ValidationAccuracy, h.Kept),
		pointAt(h.ValidationMetric, h.Kept)
	all.Pruning = append(all.Pruning, p)
	all.Steps, all.Samples = first+h.Steps-before, all.Samples+h.Samples-before*t.layout.batch
	all.Kept, all.Averaged, all.Metric = p.Kept, h.Averaged, h.Metric
	all.Loss = append(all.Loss, shiftPoints(h.Loss, first-before)...)
	all.ValidationLoss = append(all.ValidationLoss, shiftPoints(h.ValidationLoss, first-before)...)
	all.ValidationAccuracy = append(all.ValidationAccuracy, shiftPoints(h.ValidationAccuracy, first-before)...)
	all.ValidationMetric = append(all.ValidationMetric, shiftPoints(h.ValidationMetric, first-before)...)
	return nil
}

// finish adds the history to the ledger.
func (it *iterations) finish() {
	if !it.step.Env.DryRun {
		it.step.Ledger.Trained(it.history)
	}
}

// shiftPoints returns points with their steps moved by n.
func shiftPoints(ps []pass.Point, n int) []pass.Point {
	ps = slices.Clone(ps)
	for i := range ps {
		ps[i].Step += n
	}
	return ps
}

// pointAt returns the value of a curve at a step, nil if it has none.
func pointAt(ps []pass.Point, step int) *float64 {
	i := slices.IndexFunc(ps, func(p pass.Point) bool { return p.Step == step })
	if i < 0 {
		return nil
	}
	return &ps[i].Y
}

// progress returns the callback of a training, which adds the trainings before it; nil if there is none. Only the last
// training ends the step.
func (it *iterations) progress(last bool) func(pass.Progress) {
	notify := it.step.Env.OnProgress
	if notify == nil {
		return nil
	}
	ended := it.total
	return func(p pass.Progress) {
		done := p.Done
		p.Step, p.Steps, p.Ran, p.Samples = p.Step+ended.Step, p.Steps+ended.Steps, p.Ran+ended.Ran, p.Samples+ended.Samples
		p.Wait, p.Compute, p.Evaluate, p.Save, p.Trials = p.Wait+ended.Wait, p.Compute+ended.Compute,
			p.Evaluate+ended.Evaluate, p.Save+ended.Save, p.Trials+ended.Trials
		if done {
			it.total = p
		}
		if p.Done = done && last; p.Done || !done {
			notify(p)
		}
	}
}

// trainedWeights returns the trainable weights of a model among these, by name.
func trainedWeights(m *ir.Model, vs []*ir.Value) []*ir.Value {
	trainable := grad.Trainable(m, nil)
	return slices.DeleteFunc(slices.Clone(vs), func(v *ir.Value) bool {
		return !trainable[v] || v.Const.DType != ir.Float
	})
}
