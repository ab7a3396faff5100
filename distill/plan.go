package distill

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Plan is the planned memory of training, in bytes.
type Plan struct {
	Batch        int         // samples per step
	MicroBatches int         // per step
	Layout       string      // the memory savings in use
	Why          []string    // layouts that were tried, if a budget chose one
	Memory       []pass.Size // by use
	Arena        int64       // of the graphs of training, with activations, gradients and scratch memory
	Total        int64
}

// NewPlan returns the memory of FineTune with options o for a step's model, with the planner of FineTune itself. The model is not run and
// weights are not read, but for small constants that shapes may depend on. Without data in o the inputs have the types that the model
// declares, with the sizes of o.Dims, and labels are classes if the output can be class scores; otherwise a model without a teacher is its
// own teacher.
func NewPlan(ctx context.Context, step *pass.Step, o FineTune) (_ *Plan, err error) {
	dry := *step
	dry.Env.DryRun = true
	t, err := newStepTrainer(&dry, newFineTuning(o))
	if err != nil {
		return nil, err
	}
	t.planOnly = true
	defer func() { err = errors.Join(err, t.close()) }()
	teacher, err := teacherOf(&dry, t.settings)
	if err != nil {
		return nil, err
	}
	if teacher == nil && o.Path == "" {
		teacher = step.Model
	}
	c, err := t.plan(ctx, teacher)
	if err != nil {
		return nil, err
	}
	return c.summary(), nil
}

// plan chooses a layout and plans its graphs.
func (t *trainer) plan(ctx context.Context, teacher *ir.Model) (*candidate, error) {
	tape, err := t.describe(ctx, teacher)
	if err != nil {
		return nil, err
	}
	if t.fakeQuant != nil {
		t.params.initialize(tape)
		err := t.graphs.observeQuantization(ctx)
		t.params.release()
		if err != nil {
			return nil, err
		}
	}
	return t.planner().choose(ctx)
}

// summary returns the plan of a layout.
func (c *candidate) summary() *Plan {
	m := c.memory
	return &Plan{
		Batch: c.layout.batch, MicroBatches: c.layout.microBatches, Layout: m.Layout, Why: m.Why, Memory: m.sizes(), Arena: m.Arena, Total: m.Total(),
	}
}

// sizes returns the parts.
func (m *memoryUsage) sizes() []pass.Size {
	return []pass.Size{
		{Name: "weights", Bytes: m.Weights}, {Name: "optimizer", Bytes: m.States}, {Name: "accumulated gradients", Bytes: m.Sums}, {Name: "moving average", Bytes: m.Average},
		{Name: "activations and gradients", Bytes: m.Arena}, {Name: "teacher", Bytes: m.Teacher}, {Name: "batches", Bytes: m.Batches},
	}
}
