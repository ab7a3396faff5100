package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// activations are the operators after which dropout is added, before a linear layer.
var activations = []string{"Relu", "LeakyRelu", "Elu", "Selu", "Gelu", "Sigmoid", "Tanh", "HardSwish", "Swish"}

// addDropout adds dropout after the activations that linear layers consume. It returns the name of the input for the step number.
func addDropout(tape *grad.Tape, ratio float64, seed uint64) string {
	g := tape.Graph()
	counter := tape.Input("step", ir.Int64, 1)
	i := int64(0)
	for n := range g.Nodes() {
		if !slices.Contains(activations, n.Op.Type) || n.Next() == nil {
			continue
		}
		y := n.Outputs[0]
		linear := slices.DeleteFunc(slices.Clone(y.Uses()), func(u ir.Use) bool {
			return u.Node == nil || u.Node.Op.Type != "Gemm" && u.Node.Op.Type != "MatMul" || u.Index != 0
		})
		if len(linear) == 0 {
			continue
		}
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
