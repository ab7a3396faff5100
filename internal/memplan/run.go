package memplan

import (
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A Run is the memory of one run, as planned.
type Run struct {
	Batch   int64    `json:"batch"` // 1 where the batch axis is static
	Total   int64    `json:"total"` // weights, inputs, outputs and arena
	Inputs  []Port   `json:"inputs"`
	Outputs []Port   `json:"outputs"`       // copied out of the arena
	Arena   int64    `json:"arena"`         // activations and scratch
	Bound   int64    `json:"arena_bound"`   // lower bound
	Peak    int64    `json:"peak"`          // maximum of live bytes in the arena at a step
	Scratch int64    `json:"peak_scratch"`  // scratch among these
	AtStep  int      `json:"peak_step"`     // from 0
	AtNode  string   `json:"peak_node"`     // "" without live bytes
	Live    []Block  `json:"alive_at_peak"` // the largest first
	Dynamic []string `json:"dynamic"`       // nodes with data-dependent output sizes, not counted
	Steps   []Step   `json:"steps"`

	in   map[string]ir.Spec
	plan *memory.Plan
}

// A Port is an input or output of the model.
type Port struct {
	Name  string `json:"name"`
	Type  string `json:"type"` // "" where data-dependent
	Bytes int64  `json:"bytes"`
}

// A Block is memory in the arena, of a value or of a node's scratch.
type Block struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Type  string `json:"type"` // "" for scratch
	Bytes int64  `json:"bytes"`
	From  string `json:"from"` // its producer
	To    string `json:"to"`   // its last consumer, or the node that reuses its memory in place
}

// A Step is a node, or several fused ones, and the live bytes while it runs.
type Step struct {
	Node    string `json:"node"`
	Op      string `json:"op"`
	Bytes   int64  `json:"bytes"`
	Scratch int64  `json:"scratch"` // scratch among these
}

// run plans a run of a batch.
func (p *planner) run(batch int64) (*Run, error) {
	specs, err := p.types(batch)
	if err != nil {
		return nil, err
	}
	r := &Run{Batch: batch, Inputs: ports(specs), Dynamic: []string{}, Steps: []Step{}, Live: []Block{}, in: map[string]ir.Spec{}}
	for _, s := range specs {
		r.in[s.Name] = s
	}
	u, err := p.engine.Usage(r.in)
	if err != nil {
		return nil, err
	}
	types, err := p.engine.Types(r.in)
	if err != nil {
		return nil, err
	}
	for _, o := range p.engine.Outputs() {
		port := Port{Name: o.Name}
		if spec, known := types[o.Name]; known {
			port.Type, port.Bytes = spec.String(), spec.Bytes()
		}
		r.Outputs = append(r.Outputs, port)
	}
	r.plan, r.Arena, r.Bound = u.Plan, u.Plan.Size, u.Plan.Bound
	r.Dynamic = append(r.Dynamic, u.Dynamic...)
	r.Total = p.held.Bytes + bytesOf(r.Inputs) + bytesOf(r.Outputs) + r.Arena
	return r, r.timeline(u)
}

func ports(specs []ir.Spec) []Port {
	ps := []Port{}
	for _, s := range specs {
		ps = append(ps, Port{s.Name, s.String(), s.Bytes()})
	}
	return ps
}

func bytesOf(ps []Port) int64 {
	n := int64(0)
	for _, p := range ps {
		n += p.Bytes
	}
	return n
}

// PortBytes is the bytes of inputs and outputs.
func (r *Run) PortBytes() int64 { return bytesOf(r.Inputs) + bytesOf(r.Outputs) }

// timeline sets the live bytes at each step, and the blocks at the first peak.
func (r *Run) timeline(u *engine.Usage) error {
	line, err := memory.NewTimeline(u.Plan.Blocks, len(u.Steps))
	if err != nil {
		return err
	}
	for i, s := range u.Steps {
		r.Steps = append(r.Steps, Step{s.Node, s.Op, line.Live[i].Total(), line.Live[i][memory.Scratch]})
	}
	r.Peak = line.Peak
	if len(line.Peaks) == 0 {
		return nil
	}
	r.AtStep = line.Peaks[0]
	r.AtNode, r.Scratch = r.Steps[r.AtStep].Node, r.Steps[r.AtStep].Scratch
	for _, b := range line.At(r.AtStep) {
		r.Live = append(r.Live, Block{
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
