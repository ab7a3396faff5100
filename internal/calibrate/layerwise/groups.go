package layerwise

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Groups are the weights of a step that are compressed together, as they have the same input.
type Groups struct {
	Step       *pass.Step
	Name       string      // of the unit of all groups, in a journal
	Inputs     []*ir.Value // of the groups, in the order of producers
	Costs      []int64     // of each group, in any unit
	Sequential bool        // a group depends on those before it; otherwise several processes divide them
}

// Each calls compress for each group that this process computes, or whose result is known. Compress may walk to the
// input of its group.
func (w *Walk) Each(ctx context.Context, g Groups, compress func(i int) error) error {
	j := g.Step.Env.Journal
	if g.Sequential {
		return ir.Serial(ctx, j, g.Step.Unit(g.Name), func() error {
			for i := range g.Inputs {
				if err := compress(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return ir.Each(j, g.Costs, func(i int, mine bool) error {
		return ir.Run(ctx, j, g.Step.Unit(fmt.Sprintf("%s %d", g.Name, i)), mine, func() error {
			// Whoever computes this group runs the model in the parts of one that computes all of them.
			w.stops = g.Inputs[:i]
			return compress(i)
		})
	})
}

// passStops runs the nodes up to the values at which a process would stop that compresses all groups: the nodes between
// two stops are one model, whose results could differ by rounding from those of another division.
func (w *Walk) passStops(ctx context.Context) error {
	for _, v := range w.stops {
		if w.producerIndex[v]+1 > w.next {
			if err := w.run(ctx, w.producerIndex[v]+1, v); err != nil {
				return err
			}
		}
	}
	return nil
}
