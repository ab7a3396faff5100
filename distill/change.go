package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// activations are operators whose results dropout zeroes a part of, before a Linear layer.
var activations = []string{"Relu", "LeakyRelu", "Elu", "Selu", "Gelu", "Sigmoid", "Tanh", "HardSwish", "Swish"}

// drop puts dropout behind the activations that Linear layers read. It returns the name of the input for the step's number.
func (t *Trainer) drop(tape *grad.Tape) string {
	g := tape.Graph()
	counter := tape.Input("step", ir.Int64, 1)
	i := int64(0)
	for n := range g.Nodes() {
		if !slices.Contains(activations, n.Op.Type) || n.Next() == nil {
			continue
		}
		y := n.Outputs[0]
		readers := slices.DeleteFunc(slices.Clone(y.Uses()), func(u ir.Use) bool {
			return u.Node == nil || u.Node.Op.Type != "Gemm" && u.Node.Op.Type != "MatMul" || u.Index != 0
		})
		if len(readers) == 0 {
			continue
		}
		drop := tape.New(ir.OpID{Domain: "mcompress", Type: "SeededDropout"}, []*ir.Value{y, counter},
			ir.FloatAttr("ratio", float32(t.dropout)), ir.IntAttr("seed", int64(t.seed)+i))
		g.InsertBefore(n.Next(), drop)
		for _, u := range readers {
			u.Node.SetInput(u.Index, drop.Outputs[0])
		}
		i++
	}
	return counter.Name
}
