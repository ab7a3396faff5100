package partition

import (
	"context"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/partition"
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

// A Plan is a partition, with what its stages are extracted by.
type Plan struct {
	*partition.Plan
	starts   []int
	declared map[string]*ir.Type // types of the values passed between stages
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
	p := &Plan{Plan: &partition.Plan{By: o.By}}
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
	p.Shared, p.Parallel, p.Unknown = c.sharedWeights(p.starts), c.pairs(int64(o.Stages)), c.unknown()
	return p, nil
}
