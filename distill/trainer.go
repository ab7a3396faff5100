package distill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Trainer trains one model.
type Trainer struct {
	settings
	model   *ir.Model
	eval    *ir.Eval
	workers int
	chosen  map[string]bool                     // names of the weights that may change
	tell    func(step, steps int, loss float64) // after each step; may be nil
	holds   func(bytes int64)                   // may be nil

	set      *dataset.Set
	fixed    int  // samples in a run of the model, 0 if it takes any number
	unfixed  bool // shapes inside say how many samples there are, and are opened
	split    split
	ports    []dataset.Input
	first    map[string]ir.Spec // types of the model's inputs for one sample, as the data has them
	terms    []term
	teacher  *teacher
	augment  *augment
	rounding *rounding // nil where nothing is rounded
	vars     map[string]*variable
	order    []*variable // in the order of the graph
	moments  []*moment

	folder string // for temporary files
	layout *layout
	step   *step
	update *update
	judge  *judge

	course Course
	state  state
}

// A split says which samples are learned from.
type split struct{ learn, judge []int }

// newSplit keeps a share of n samples apart.
func newSplit(n int, share float64, seed uint64) split {
	all := dataset.Shuffled(n, seed^splitStream)
	k := int(math.Round(share * float64(n)))
	if k == 0 && share > 0 && n > 1 {
		k = 1
	}
	s := split{learn: slices.Clone(all[k:]), judge: slices.Clone(all[:k])}
	slices.Sort(s.learn)
	slices.Sort(s.judge)
	return s
}

// splitStream keeps the choice of samples apart from their order.
const splitStream = 0x73706c6974

// close ends what the trainer holds.
func (t *Trainer) close() error {
	errs := []error{t.step.close(), t.update.close(), t.judge.close(), t.teacher.close(), t.augment.close()}
	if t.set != nil {
		errs = append(errs, t.set.Close())
	}
	if t.folder != "" {
		errs = append(errs, os.RemoveAll(t.folder))
	}
	return errors.Join(errs...)
}

// prepare opens the data, reads the weights, and finds a layout for the steps.
func (t *Trainer) prepare(ctx context.Context, teacher *ir.Model) (err error) {
	if t.folder, err = os.MkdirTemp("", "mcompress-train-"); err != nil {
		return err
	}
	if err := t.opened(ctx); err != nil {
		return err
	}
	if t.terms, err = t.settings.terms(t.model, teacher, t.set.Labelled()); err != nil {
		return err
	}
	if t.teacher, err = newTeacher(ctx, teacher, t); err != nil {
		return fmt.Errorf("teacher: %w", err)
	}
	if t.augment, err = newAugment(ctx, t); err != nil {
		return err
	}
	if err := t.weights(ctx); err != nil {
		return err
	}
	if err := t.rehearse(ctx); err != nil {
		return err
	}
	return t.fit(ctx)
}

// opened opens the data. Models that were exported for batches of one size mostly run on others too: where they do not, a batch is
// computed in parts of that size.
func (t *Trainer) opened(ctx context.Context) (err error) {
	t.ports = freed(dataset.Inputs(t.model.Graph))
	if t.set, err = t.data.Open(t.model, t.ports, t.workers); err != nil {
		return err
	}
	if err := t.samples(ctx); err != nil {
		return err
	}
	if free, err := t.free(ctx); free || err != nil {
		return err
	}
	t.ports = dataset.Inputs(t.model.Graph)
	if err := t.set.Close(); err != nil {
		return err
	}
	if t.set, err = t.data.Open(t.model, t.ports, t.workers); err != nil {
		return err
	}
	t.fixed = t.set.Size(1)
	if t.batch%t.fixed != 0 {
		return pass.OptionErrorf("the model requires batches of exactly %d samples; use --batch %d or a multiple", t.fixed, t.fixed)
	}
	t.settings.accumulate = t.batch / t.fixed
	return t.samples(ctx)
}

// freed are inputs whose first axis may have any size.
func freed(inputs []dataset.Input) []dataset.Input {
	out := slices.Clone(inputs)
	for i, in := range out {
		if in.Type == nil || len(in.Type.Shape) == 0 {
			continue
		}
		typ := *in.Type
		typ.Shape = slices.Clone(typ.Shape)
		typ.Shape[0] = ir.Dim{N: -1}
		out[i].Type = &typ
	}
	return out
}

// samples splits the data and looks at the first one.
func (t *Trainer) samples(ctx context.Context) error {
	t.split = newSplit(t.set.Len(), t.validate, t.seed)
	if len(t.split.learn) < t.batch {
		return fmt.Errorf("%d training samples are fewer than one batch of %d; use a smaller --batch", len(t.split.learn), t.batch)
	}
	for b, err := range t.set.Batches(ctx, dataset.Order{Size: 1, Index: t.split.learn[:max(1, t.fixed)]}) {
		if err != nil {
			return err
		}
		t.first = map[string]ir.Spec{}
		for name, a := range b.Inputs {
			t.first[name] = a.Spec()
		}
	}
	return nil
}

// specs are the types of the model's inputs for n samples.
func (t *Trainer) specs(n int) map[string]ir.Spec {
	out := map[string]ir.Spec{}
	for name, s := range t.first {
		s.Shape = slices.Clone(s.Shape)
		if len(s.Shape) > 0 {
			s.Shape[0] = s.Shape[0] * int64(n) / int64(max(1, t.fixed))
		}
		out[name] = s
	}
	return out
}

// trained reports whether a weight may change.
func (t *Trainer) trained(name string) bool { return t.chosen == nil || t.chosen[name] }

// weights reads those that training changes.
func (t *Trainer) weights(ctx context.Context) error {
	tape, err := grad.New(ctx, t.model, grad.Options{Inputs: t.specs(max(1, t.fixed)), Train: t.trained, Change: t.opening(ctx), BatchStatistics: t.statistics})
	if err != nil {
		return err
	}
	if t.moments, err = readMoments(ctx, t.eval, tape); err != nil {
		return err
	}
	t.vars = map[string]*variable{}
	for _, p := range tape.Params {
		if p.Tensor.DType != ir.Float {
			return fmt.Errorf("tensor %q is %s; training supports float32", p.Name, p.Tensor.DType)
		}
		v, err := load(ctx, t.eval, p.Name, p.Tensor)
		if err != nil {
			return err
		}
		t.vars[p.Name] = v
		t.order = append(t.order, v)
	}
	if len(t.order) == 0 {
		return errors.New("the model has no trainable weights")
	}
	if t.reinit >= 0 {
		reinit(tape, t.vars, uint64(t.reinit))
		for _, m := range t.moments {
			m.reinit()
		}
	}
	return nil
}

// change puts what is random or rounded in training into a copied graph.
func (t *Trainer) change(ctx context.Context, st *step) func(*grad.Tape) error {
	return func(tape *grad.Tape) error {
		if t.dropout > 0 {
			st.names.counter = t.drop(tape)
		}
		return t.changed(ctx, st.feeds)(tape)
	}
}

// changed puts in what is not random, and opens shapes. It adds the arrays that what it puts in is fed with.
func (t *Trainer) changed(ctx context.Context, feeds map[string]*ir.Array) func(*grad.Tape) error {
	return func(tape *grad.Tape) error {
		t.rounding.put(tape, feeds)
		return t.opening(ctx)(tape)
	}
}

// opening opens shapes, if this model needs that.
func (t *Trainer) opening(ctx context.Context) func(*grad.Tape) error {
	if !t.unfixed {
		return func(*grad.Tape) error { return nil }
	}
	return t.reshapes(ctx)
}
