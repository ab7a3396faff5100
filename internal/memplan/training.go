package memplan

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A Trainer plans the training of a model file.
type Trainer struct {
	Path    string
	Before  []pass.Options // steps before training
	Train   distill.FineTune
	Later   []pass.Options // the quantization step of QAT
	Workers int
	Limits  memory.Limits
}

// errPlanned ends a pipeline after its training step was planned.
var errPlanned = errors.New("planned")

// A plannedStep is a training step that calls a function instead of training.
type plannedStep struct {
	distill.FineTune
	run func(context.Context, *pass.Step, distill.FineTune) error
}

// Run calls the function with the complete options, and ends the pipeline.
func (p plannedStep) Run(ctx context.Context, s *pass.Step) error {
	if err := p.run(ctx, s, p.FineTune); err != nil {
		return err
	}
	return errPlanned
}

// With returns t with other options of training.
func (t Trainer) With(change func(*distill.FineTune)) *Trainer {
	change(&t.Train)
	return &t
}

// Plan returns the planned memory of training. No weight is read.
func (t *Trainer) Plan(ctx context.Context, o distill.PlanOptions) (p *distill.Plan, err error) {
	err = t.step(ctx, func(ctx context.Context, s *pass.Step, f distill.FineTune) error {
		p, err = distill.NewPlan(ctx, s, f, o)
		return err
	})
	return p, err
}

// step calls a function at the training step of the pipeline, with its model and complete options.
func (t *Trainer) step(ctx context.Context, run func(context.Context, *pass.Step, distill.FineTune) error) (err error) {
	f, err := remote.OpenModel(ctx, t.Path)
	if err != nil {
		return err
	}
	opened := []*onnx.File{f}
	e := ir.NewEval("")
	defer func() {
		err = errors.Join(err, e.Close())
		for _, f := range opened {
			err = errors.Join(err, f.Close())
		}
	}()
	env := pass.Environment{Workers: t.Workers, Limits: t.Limits, Open: func(path string) (*ir.Model, error) {
		f, err := remote.OpenModel(ctx, path)
		if err != nil {
			return nil, err
		}
		opened = append(opened, f)
		return f.Model, nil
	}}
	steps := append(append([]pass.Options{}, t.Before...), plannedStep{t.Train, run})
	if _, err = pass.Run(ctx, f.Model, e, env, append(steps, t.Later...)); errors.Is(err, errPlanned) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	return nil
}

// TrainingPage is the memory of a training step for a report: persistent memory below the arena.
func TrainingPage(model string, p *distill.Plan) *report.Memory {
	m := &report.Memory{Model: model, Run: fmt.Sprintf("training, batch %d, %s: %s", p.Batch, p.Optimizer, p.Layout),
		Plan: p.Blocks}
	for _, s := range p.Steps {
		m.Steps = append(m.Steps, s.String())
	}
	kinds := map[string]memory.Kind{"weights": memory.Weight, "teacher": memory.Weight, "moving average": memory.Weight,
		"optimizer": memory.State, "accumulated gradients": memory.Gradient, "batches": memory.Activation}
	for _, s := range p.Memory {
		if k, held := kinds[s.Name]; held && s.Bytes > 0 {
			m.Held = append(m.Held, memory.Block{Name: s.Name, Kind: k, Bytes: s.Bytes})
		}
	}
	return m
}

// TrainingCurve is the memory of a choice over time.
func TrainingCurve(c *Choice) report.MemoryCurve {
	curve := report.MemoryCurve{Name: c.Name, Held: c.Total - c.Arena}
	for _, s := range c.Plan.Steps {
		curve.Live = append(curve.Live, s.Bytes)
	}
	return curve
}
