package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// addDropout adds dropout after the activation functions that linear layers consume. It returns the name of the input
// for the numbers of the step and of its micro-batch.
func addDropout(tape *grad.Tape, ratio float64, seed uint64) string {
	g := tape.Graph()
	counter := tape.Input("step", ir.Int64, 2)
	i := int64(0)
	for n := range g.Nodes() {
		if !operator.Of(n).Nonlinearity || n.Next() == nil {
			continue
		}
		y := n.Outputs[0]
		linear := slices.DeleteFunc(slices.Clone(y.Uses()), func(u ir.Use) bool {
			return u.Node == nil || u.Index != 0 || !operator.Of(u.Node).Product()
		})
		if len(linear) == 0 {
			continue
		}
		// A seed of its own: equal ones would drop the same positions of every layer.
		dropout := tape.New(ir.OpID{Domain: "mcompress", Type: "SeededDropout"}, []*ir.Value{y, counter},
			ir.FloatAttr("ratio", float32(ratio)), ir.IntAttr("seed", int64(seed)+i))
		g.InsertBefore(n.Next(), dropout)
		for _, u := range linear {
			u.Node.SetInput(u.Index, dropout.Outputs[0])
		}
		i++
	}
	return counter.Name
}
