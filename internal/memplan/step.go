package memplan

import (
	"fmt"
	"maps"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report"
)

// train plans a step of training with so many samples.
func (p *planner) train(m *ir.Model, batch int64, o TrainOptions) (*TrainRun, error) {
	f, err := p.forecast(m, batch, o)
	if err != nil {
		return nil, err
	}
	r := &TrainRun{Batch: batch, Segments: f.segments, Unknown: f.unknown, Layers: f.layers, passes: f.passes}
	return r, r.follow()
}

// A forecast is a step of training: what it keeps by layers, and what is alive over time.
type forecast struct {
	layers   []Layer
	passes   *memory.Passes
	segments int
	unknown  int // values that are not counted
}

// forecast goes by the rules of operators in savings: it knows nothing of how a step is really run.
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
	choose, err := segmented(o.Checkpoint)
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

// follow says what is alive at each step, and at the first peak.
func (r *TrainRun) follow() error {
	line, err := memory.NewTimeline(r.passes.Blocks, len(r.passes.Steps))
	if err != nil {
		return err
	}
	for i, name := range r.passes.Steps {
		r.Steps = append(r.Steps, TrainStep{name, line.Alive[i].Total(), line.Alive[i][memory.Gradient]})
	}
	if r.Peak, r.Activations, err = r.passes.Peak(); err == nil && len(line.Peaks) > 0 {
		r.AtStep = line.Peaks[0]
		r.AtNode = r.Steps[r.AtStep].Name
	}
	return err
}

// Page is the memory of the last run as it is drawn: what is held all the time below what comes and
// goes.
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
		{Name: "states of the optimizer", Kind: memory.State, Bytes: t.States.Optimizer.Device},
	} {
		if b.Bytes > 0 {
			m.Held = append(m.Held, b)
		}
	}
	return m, nil
}
