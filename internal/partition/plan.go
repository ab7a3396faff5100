package partition

import (
	"context"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// Options say how a model is cut.
type Options struct {
	Stages int
	By     string           // what makes a stage large: one of Costs
	Batch  int64            // size of open batch axes that values are measured with; 0 for 1
	Dims   map[string]int64 // sizes of other open axes by their names
}

// Costs are what stages can be balanced by.
func Costs() []string { return []string{"weights", "activations", "flops"} }

// A Plan is a model cut into stages. All sizes are bytes.
type Plan struct {
	By       string   `json:"by"`
	Stages   []*Stage `json:"stages"`
	Shared   []Shared `json:"shared_weights"`
	Parallel []Pair   `json:"tensor_parallel"` // weights to cut within a stage, over as many devices as there are stages
	Unknown  int      `json:"unknown_values"`  // whose size only a run tells: they are not counted
	starts   []int
}

// A Stage is nodes that run on one device.
type Stage struct {
	Nodes   int    `json:"nodes"` // with those that compute with constants alone
	First   string `json:"first_node"`
	Last    string `json:"last_node"`
	Cost    int64  `json:"cost"`    // what stages are balanced by
	Weights int64  `json:"weights"` // of constants, each once
	Peak    int64  `json:"peak"`    // the most bytes of values alive at one node, what the stage is given among them
	Inputs  []Port `json:"inputs"`
	Outputs []Port `json:"outputs"`
	Handed  int64  `json:"handed_on"` // across the cut behind the stage
	Crosses []Port `json:"crosses"`   // these values: some may come from earlier stages, and skip the next one
}

// A Port is a value that goes from one stage to another.
type Port struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	From  int    `json:"from_stage"` // 0 for inputs of the model
}

// A Shared weight is one that several stages hold.
type Shared struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Stages []int  `json:"stages"` // from 1
}

// New cuts m: the largest stage is as small as it can be, then as few bytes as can be cross the
// cuts. It reads no weights and leaves m as it is.
func New(ctx context.Context, m *ir.Model, o Options) (*Plan, error) {
	p, _, err := cut(ctx, m, o)
	return p, err
}

// cut is New, with the types to declare of the values that go from stage to stage.
func cut(ctx context.Context, m *ir.Model, o Options) (*Plan, map[string]*ir.Type, error) {
	out, err := newOutline(m.Graph)
	if err != nil {
		return nil, nil, err
	}
	types, err := typesOf(ctx, m, dataset.Random{Batch: o.Batch, Dims: o.Dims})
	if err != nil {
		return nil, nil, err
	}
	c := &cutter{outline: out, types: types}
	p := &Plan{By: o.By}
	l, err := c.line(o.By)
	if err != nil {
		return nil, nil, err
	}
	if p.starts, err = l.partition(o.Stages); err != nil {
		return nil, nil, err
	}
	declared := map[string]*ir.Type{}
	for k := range o.Stages {
		s, err := c.stage(p.starts, k, declared)
		if err != nil {
			return nil, nil, err
		}
		s.Cost = l.cost(p.starts[k], p.starts[k+1])
		p.Stages = append(p.Stages, s)
	}
	p.Shared, p.Parallel, p.Unknown = c.shared(p.starts), c.pairs(int64(o.Stages)), c.unknown()
	return p, declared, nil
}
