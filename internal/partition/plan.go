package partition

import (
	"context"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// Options are the parameters of a partition.
type Options struct {
	Stages int
	By     string           // balance criterion: one of Costs
	Batch  int64            // size of dynamic batch axes; 0 means 1
	Dims   map[string]int64 // sizes of other dynamic axes by name
}

// Costs are the balance criteria.
func Costs() []string { return []string{"weights", "activations", "flops"} }

// A Plan is a model partitioned into stages. Sizes are in bytes.
type Plan struct {
	By       string   `json:"by"`
	Stages   []*Stage `json:"stages"`
	Shared   []Shared `json:"shared_weights"`
	Parallel []Pair   `json:"tensor_parallel"` // weights to split within a stage, over one device per stage
	Unknown  int      `json:"unknown_values"`  // values of unknown size, which are not counted
	// of the slowest stage, where measured: a pipeline completes at most 1/Seconds batches per second
	Seconds  float64 `json:"seconds,omitempty"`
	starts   []int
	declared map[string]*ir.Type // types of the values passed between stages
}

// A Stage is the nodes of one device.
type Stage struct {
	Nodes   int     `json:"nodes"` // including constant-only nodes
	First   string  `json:"first_node"`
	Last    string  `json:"last_node"`
	Cost    int64   `json:"cost"`    // by the balance criterion
	Weights int64   `json:"weights"` // of constants, each once
	Peak    int64   `json:"peak"`    // maximum bytes of values live at a node, stage inputs included
	Inputs  []Port  `json:"inputs"`
	Outputs []Port  `json:"outputs"`
	Seconds float64 `json:"seconds,omitempty"` // of a run, where measured
	Handed  int64   `json:"handed_on"`         // bytes across the cut after the stage
	// the values across the cut: some may come from earlier stages, and skip the next one
	Crosses []Port `json:"crosses"`
}

// A Port is a value passed between stages.
type Port struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	From  int    `json:"from_stage"` // 0 for inputs of the model
}

// A Shared weight is in several stages.
type Shared struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Stages []int  `json:"stages"` // from 1
}

// New partitions m: it minimizes the largest stage, then the bytes across
// cuts. It reads no weights and does not change m.
func New(ctx context.Context, m *ir.Model, o Options) (*Plan, error) {
	out, err := newOutline(m.Graph)
	if err != nil {
		return nil, err
	}
	types, err := typesOf(ctx, m, dataset.Random{Batch: o.Batch, Dims: o.Dims})
	if err != nil {
		return nil, err
	}
	c := &cutter{outline: out, types: types}
	p := &Plan{By: o.By}
	l, err := c.line(o.By)
	if err != nil {
		return nil, err
	}
	if p.starts, err = l.partition(o.Stages); err != nil {
		return nil, err
	}
	p.declared = map[string]*ir.Type{}
	for k := range o.Stages {
		s, err := c.stage(p.starts, k, p.declared)
		if err != nil {
			return nil, err
		}
		s.Cost = l.cost(p.starts[k], p.starts[k+1])
		p.Stages = append(p.Stages, s)
	}
	p.Shared, p.Parallel, p.Unknown = c.shared(p.starts), c.pairs(int64(o.Stages)), c.unknown()
	return p, nil
}
