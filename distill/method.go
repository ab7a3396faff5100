package distill

import (
	"errors"
	"flag"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// FineTune trains the weights that a model has, from labels or from the model as it was before earlier steps. Weights
// that were pruned stay zero.
var FineTune = method(tuning, "fine-tune to recover accuracy after compression")

// Distill trains a student to say what its teacher says (Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015,
// arXiv:1503.02531). The student is the model as earlier steps left it.
var Distill = method(teaching, "train a student from a teacher (knowledge distillation)")

// The kinds of training.
var (
	tuning   = kind{name: "finetune", alpha: -1, rate: 0.2}
	teaching = kind{name: "distill", rate: 1}
)

func method(k kind, doc string) *pass.Method {
	return &pass.Method{
		Name: k.name, Command: k.name, Doc: doc, Stage: pass.Train,
		Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
			s := &settings{}
			s.bind(fs, k)
			return s.run
		},
	}
}

// run trains c's model.
func (s *settings) run(c *pass.Context) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	if s.reinit >= 0 {
		s.statistics, s.kind.rate = true, 1
	}
	t := &Trainer{settings: *s, model: c.Model, eval: c.Eval, workers: c.Workers, chosen: selected(c), tell: c.Trained}
	defer func() { err = errors.Join(err, t.close()) }()
	teacher, err := s.teacherOf(c)
	if err != nil {
		return err
	}
	t.holds = c.Holds
	if t.rounding, err = s.newRounding(c); err != nil {
		return err
	}
	if err := t.prepare(c, teacher); err != nil {
		return err
	}
	if c.DryRun {
		t.store(c)
		return nil
	}
	if err := t.goOn(c); err != nil {
		return err
	}
	if err := t.train(c); err != nil {
		return err
	}
	t.report(c)
	t.store(c)
	return nil
}

// teacherOf is the model in --teacher, or the one that the pipeline began with if a step changed it, or if
// this is to learn from it.
func (s *settings) teacherOf(c *pass.Context) (*ir.Model, error) {
	if s.teacher == "" {
		return c.Source, nil
	}
	if c.Open == nil {
		return nil, errors.New("--teacher: cannot open models in this context")
	}
	return c.Open(s.teacher)
}

// selected are the names of the weights that the step's selection takes.
func selected(c *pass.Context) map[string]bool {
	chosen := map[string]bool{}
	for v := range grad.Trainable(c.Model, nil) {
		if c.Select.Excludes(v, pass.Readers(v)) == "" {
			chosen[v.Name] = true
		}
	}
	return chosen
}

// store puts the trained weights into the model.
func (t *Trainer) store(c *pass.Context) {
	for v := range grad.Trainable(c.Model, t.trained) {
		w := t.vars[v.Name]
		if w == nil || w.tensor != v.Const {
			continue
		}
		t.replace(c, v, w.array)
	}
	for _, v := range c.Model.Graph.Consts() {
		if m := t.moment(v.Const); m != nil {
			t.replace(c, v, m.array)
		}
	}
}

// replace puts a weight in the place of what it was.
func (t *Trainer) replace(c *pass.Context, v *ir.Value, now *ir.Array) {
	before, readers := v.Const, pass.Readers(v)
	after := &ir.Tensor{Spec: before.Spec, Source: ir.Mem(now.Data)}
	v.SetConst(after)
	c.Changed(v, before, readers, pass.Row{
		Form: pass.InPlace, After: []pass.Part{{Role: pass.Payload, Value: v, Tensor: after}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return parts[0] },
	})
}

// report hands the course on to whoever reports.
func (t *Trainer) report(c *pass.Context) {
	k := t.state.Course
	c.Trainings = append(c.Trainings, pass.Training{
		Method: c.Method, Steps: t.state.Step, Samples: t.state.Step * t.layout.batch, Kept: k.Kept,
		Loss: k.Loss, Judged: k.Judged, Agree: k.Agree,
		Memory: []pass.Size{
			{Name: "weights", Bytes: k.Memory.Weights}, {Name: "optimizer", Bytes: k.Memory.States}, {Name: "sums of gradients", Bytes: k.Memory.Sums},
			{Name: "activations and gradients", Bytes: k.Memory.Arena}, {Name: "teacher", Bytes: k.Memory.Teacher}, {Name: "batches", Bytes: k.Memory.Batches},
		},
		Layout: k.Memory.Layout, Why: k.Memory.Why,
	})
}
