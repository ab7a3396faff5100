package memplan

import (
	"fmt"
	"maps"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report"
)

// train plans a training step of a batch.
func (p *planner) train(m *ir.Model, batch int64, o TrainOptions) (*TrainRun, error) {
	f, err := p.forecast(m, batch, o)
	if err != nil {
		return nil, err
	}
	r := &TrainRun{Batch: batch, Segments: f.segments, Unknown: f.unknown, Layers: f.layers, passes: f.passes}
	return r, r.timeline()
}

// A forecast is a training step: saved tensors by layer, and live bytes over time.
type forecast struct {
	layers   []Layer
	passes   *memory.Passes
	segments int
	unknown  int // values of data-dependent size
}

// forecast follows savedTensorRules; the trainer of package distill is not involved.
func (p *planner) forecast(m *ir.Model, batch int64, o TrainOptions) (*forecast, error) {
	specs, err := p.types(batch)
	if err != nil {
		return nil, err
	}
	in := map[string]ir.Spec{}
	for _, s := range specs {
		in[s.Name] = s
	}
	types, err := p.engine.Types(in)
	if err != nil {
		return nil, err
	}
	maps.Copy(types, in)
	width, err := o.Activity()
	if err != nil {
		return nil, err
	}
	r, err := record(m.Graph, types, width)
	if err != nil {
		return nil, err
	}
	choose, err := checkpointing(o.Checkpoint)
	if err != nil {
		return nil, err
	}
	segments, err := choose(&r.tape)
	if err != nil {
		return nil, err
	}
	passes, err := r.tape.Plan(segments)
	if err != nil {
		return nil, err
	}
	return &forecast{r.layers(passes), passes, max(1, len(segments)), r.unknown}, nil
}

// layers are those of passes with the nodes' names.
func (r *recorder) layers(p *memory.Passes) []Layer {
	list := []Layer{}
	for i, l := range p.Layers {
		list = append(list, Layer{
			Node: r.tape.Nodes[i].Name, Op: r.ops[i], Output: l.Output, Kept: l.Kept, Gradient: l.Gradient, Difference: l.Kept - l.Gradient,
		})
	}
	return list
}

// timeline sets the live bytes at each step and the first peak.
func (r *TrainRun) timeline() error {
	line, err := memory.NewTimeline(r.passes.Blocks, len(r.passes.Steps))
	if err != nil {
		return err
	}
	for i, name := range r.passes.Steps {
		r.Steps = append(r.Steps, TrainStep{name, line.Live[i].Total(), line.Live[i][memory.Gradient]})
	}
	if r.Peak, r.Activations, err = r.passes.Peak(); err == nil && len(line.Peaks) > 0 {
		r.AtStep = line.Peaks[0]
		r.AtNode = r.Steps[r.AtStep].Name
	}
	return err
}

// Page is the memory of the last run for a report: persistent blocks below the others.
func (t *Training) Page(model string) (*report.Memory, error) {
	r := t.Runs[len(t.Runs)-1]
	plan, err := memory.Place(r.passes.Blocks)
	if err != nil {
		return nil, err
	}
	m := &report.Memory{Model: model, Run: fmt.Sprintf("training, batch %d, %s, %s", r.Batch, t.Optimizer, t.Precision), Plan: plan, Steps: r.passes.Steps}
	if t.Fixed {
		m.Run = fmt.Sprintf("training, %s, %s", t.Optimizer, t.Precision)
	}
	for _, b := range []memory.Block{
		{Name: "parameters", Kind: memory.Weight, Bytes: t.States.Parameters.Device},
		{Name: "gradients of parameters", Kind: memory.Gradient, Bytes: t.States.Gradients.Device},
		{Name: "optimizer states", Kind: memory.State, Bytes: t.States.Optimizer.Device},
	} {
		if b.Bytes > 0 {
			m.Held = append(m.Held, b)
		}
	}
	return m, nil
}
