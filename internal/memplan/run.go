package memplan

import (
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// A plannedRun is the plan of a run, with the inputs and buffers that it is computed from.
type plannedRun struct {
	*memoryplan.Run
	in      map[string]ir.Spec
	buffers *memory.Plan
}

// planRun plans a run of a batch.
func (p *planner) planRun(batch int64) (*plannedRun, error) {
	specs, err := p.types(batch)
	if err != nil {
		return nil, err
	}
	r := &plannedRun{in: map[string]ir.Spec{}, Run: &memoryplan.Run{
		Batch: batch, Inputs: ports(specs), Dynamic: []string{}, Steps: []memoryplan.Step{}, Live: []memoryplan.Block{},
	}}
	for _, s := range specs {
		r.in[s.Name] = s
	}
	u, err := p.engine.Usage(r.in)
	if err != nil {
		return nil, dataset.ExplainSpecs(p.inputs, p.random(batch), err)
	}
	types, err := p.engine.Types(r.in)
	if err != nil {
		return nil, err
	}
	for _, o := range p.engine.Outputs() {
		port := memoryplan.Port{Name: o.Name}
		if spec, known := types[o.Name]; known {
			port.Type, port.Bytes = spec.String(), spec.Bytes()
		}
		r.Outputs = append(r.Outputs, port)
	}
	r.buffers, r.Arena, r.Bound = u.Plan, u.Plan.Size, u.Plan.Bound
	r.Dynamic = append(r.Dynamic, u.Dynamic...)
	r.Total = p.weights.Bytes + r.PortBytes() + r.Arena
	return r, r.timeline(u)
}

func ports(specs []ir.Spec) []memoryplan.Port {
	ps := []memoryplan.Port{}
	for _, s := range specs {
		ps = append(ps, memoryplan.Port{Name: s.Name, Type: s.String(), Bytes: s.Bytes()})
	}
	return ps
}

// timeline sets the live bytes at each step, and the blocks at the first peak.
func (r *plannedRun) timeline(u *engine.Usage) error {
	line, err := memory.NewTimeline(u.Plan.Blocks, len(u.Steps))
	if err != nil {
		return err
	}
	for i, s := range u.Steps {
		r.Steps = append(r.Steps, memoryplan.Step{
			Node: s.Node, Op: s.Op, Bytes: line.Live[i].Total(), Scratch: line.Live[i][memory.Scratch],
		})
	}
	r.Peak = line.Peak
	if len(line.Peaks) == 0 {
		return nil
	}
	r.AtStep = line.Peaks[0]
	r.AtNode, r.Scratch = r.Steps[r.AtStep].Node, r.Steps[r.AtStep].Scratch
	for _, b := range line.At(r.AtStep) {
		r.Live = append(r.Live, memoryplan.Block{
			Name: b.Name, Kind: b.Kind.String(), Bytes: b.Bytes, Type: typeOf(b, u.Steps[b.First]),
			From: u.Steps[b.First].Node, To: u.Steps[b.Last].Node,
		})
	}
	return nil
}

// typeOf is the type of b's value, an output of the step.
func typeOf(b memory.Block, s engine.Step) string {
	for _, spec := range s.Out {
		if b.Kind == memory.Activation && spec.Name == b.Name {
			return spec.String()
		}
	}
	return ""
}
