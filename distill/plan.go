package distill

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Plan is the planned memory of training, in bytes.
type Plan struct {
	Batch        int      `json:"batch"`         // samples per step
	MicroBatches int      `json:"micro_batches"` // per step
	Fixed        bool     `json:"batch_fixed"`   // the model requires micro-batches of this size
	Parameters   int64    `json:"parameters"`    // trained elements
	Optimizer    string   `json:"optimizer"`
	Losses       []string `json:"losses"`
	pass.TrainingMemory
	Bytes int64      `json:"total"`
	Arena int64      `json:"arena"` // of the graphs of training: activations, gradients and scratch memory
	Work  float64    `json:"work"`  // multiply-adds of a step, with recomputation
	Steps []PlanStep `json:"steps"` // executed nodes of a micro-batch, over time

	Blocks *memory.Plan `json:"-"` // of the arena of Steps
}

// A PlanStep is an executed node of a training step: several nodes of the model may be fused.
type PlanStep struct {
	Layer string     `json:"layer,omitempty"` // node of the model; empty for losses and updates
	Op    string     `json:"op"`              // operator of the executed node
	Phase grad.Phase `json:"phase"`
	Bytes int64      `json:"bytes"` // live bytes of the arena
	After int64      `json:"after"` // of these, the bytes that are still live after it
}

// PlanOptions are the options of NewPlan.
type PlanOptions struct {
	Plain bool // without operator fusion, as no training runs
	Sizes bool // without Peak, Live, Trades and Steps, which take several times as long
}

// NewPlan returns the memory of FineTune with options o for a step's model, with the planner of FineTune itself. The
// model is not run and weights are not read, but for small constants that shapes may depend on. Without data in o the
// inputs have the types that the model declares, with the sizes of o.Dims, and labels are classes if the output can be
// class scores; otherwise a model without a teacher is its own teacher. With QAT all weights and activations that the
// method supports count as quantized, so that the plan is an upper bound: calibration may leave some in float32. The
// weights of recurrent layers are read then.
func NewPlan(ctx context.Context, step *pass.Step, o FineTune, with PlanOptions) (_ *Plan, err error) {
	dry := *step
	dry.Env.DryRun = true
	t, err := newStepTrainer(&dry, newFineTuning(o))
	if err != nil {
		return nil, err
	}
	t.planOnly, t.plain = true, with.Plain
	defer func() { err = errors.Join(err, t.close()) }()
	t.settings.itself = o.Path != "" && isItself(step, t.settings)
	teachers, err := planTeachers(&dry, t.settings)
	if err != nil {
		return nil, err
	}
	c, err := t.plan(ctx, teachers)
	if err != nil {
		return nil, err
	}
	pl := t.planner()
	p := pl.newPlan(c)
	if with.Sizes {
		p.TrainingMemory = pass.TrainingMemory{Budget: int64(t.settings.MemoryBudget), Memory: c.memory.sizes(),
			Layout: c.memory.Layout, Why: c.memory.Why}
		return p, nil
	}
	if p.TrainingMemory, err = pl.summary(ctx, c); err != nil {
		return nil, err
	}
	p.Steps, err = c.step.timeline(p.Blocks)
	return p, err
}

// planTeachers returns the teachers; without data and without another one the model itself.
func planTeachers(step *pass.Step, s *settings) ([]*ir.Model, error) {
	list, err := teachersOf(step, s)
	if list == nil && err == nil && s.Path == "" {
		return []*ir.Model{step.Model}, nil
	}
	return list, err
}

// plan chooses a layout and plans its graphs.
func (t *trainer) plan(ctx context.Context, teachers []*ir.Model) (*candidate, error) {
	tape, err := t.describe(ctx, teachers)
	if err != nil {
		return nil, err
	}
	if t.fakeQuant != nil {
		// Methods look at weights before they quantize them: random ones have none of the reasons to leave a weight in
		// float.
		t.params.initialize(tape)
		err := t.graphs.observeQuantization(ctx)
		t.params.release()
		if err != nil {
			return nil, err
		}
	}
	return t.planner().choose(ctx)
}

// newPlan returns the sizes of a layout.
func (pl *planner) newPlan(c *candidate) *Plan {
	p := &Plan{
		Batch: c.layout.batch, MicroBatches: c.layout.microBatches, Fixed: pl.loader.fixedBatch > 0,
		Optimizer: pl.settings.Optimizer,
		Bytes:     c.memory.Total(), Arena: c.memory.Arena,
		// The backward pass has two products for each one of the forward pass: for the gradients of both operands.
		Work: float64(c.layout.microBatches) * (3*c.step.forward + c.step.recomputed), Blocks: c.step.blocks(),
	}
	for _, w := range pl.params.weights {
		p.Parameters += w.array.Elems()
	}
	for _, l := range pl.terms {
		if !slices.Contains(p.Losses, l.kind) {
			p.Losses = append(p.Losses, l.kind)
		}
	}
	return p
}

// blocks returns the blocks of the arena with their kinds in training.
func (st *step) blocks() *memory.Plan {
	plan := *st.usage.Plan
	plan.Blocks = slices.Clone(plan.Blocks)
	for i, b := range plan.Blocks {
		if r, ok := st.roles[b.Name]; ok && b.Kind == memory.Activation {
			plan.Blocks[i].Kind = r.Kind
		}
	}
	return &plan
}

// timeline returns the executed nodes with the live bytes of the arena.
func (st *step) timeline(plan *memory.Plan) ([]PlanStep, error) {
	line, err := memory.NewTimeline(plan.Blocks, len(st.usage.Steps))
	if err != nil {
		return nil, err
	}
	freed := make([]int64, len(st.usage.Steps))
	for _, b := range plan.Blocks {
		freed[b.Last] += b.Bytes
	}
	var out []PlanStep
	for i, s := range st.usage.Steps {
		r, live := st.roleOf(s), line.Live[i].Total()
		p := PlanStep{Op: s.Op, Phase: r.Phase, Bytes: live, After: live - freed[i]}
		if r.Layer != nil {
			p.Layer = r.Layer.Label()
		}
		out = append(out, p)
	}
	return out, nil
}

// roleOf returns the role of the results of an executed node.
func (st *step) roleOf(s engine.Step) grad.Role {
	for _, v := range s.Out {
		if r, ok := st.roles[v.Name]; ok {
			return r
		}
	}
	return grad.Role{Phase: grad.Update, Kind: memory.Gradient}
}

// String names the layer, or the operator of losses and updates, and the phase.
func (s PlanStep) String() string { return cmp.Or(s.Layer, s.Op) + " " + string(s.Phase) }
