package distill

import (
	"slices"

	"github.com/mcompress/mcompress/engine/grad"
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

// round puts the rounding of a method that comes later into the graph: weights of layers by channel and, where the method
// takes activations to integers too, those.
func round(tape *grad.Tape, method string) {
	g := tape.Graph()
	axes := map[string]int64{"Conv": 0, "Gemm": 1, "MatMul": 1}
	seen := map[*ir.Value]*ir.Value{}
	for n := range g.Nodes() {
		axis, ok := axes[n.Op.Type]
		if !ok || !isParam(tape, n.Input(1)) || method == "dynamic-int8" && n.Op.Type == "Conv" {
			continue
		}
		attrs := []*ir.Attr{ir.IntAttr("axis", axis)}
		switch rank := int64(len(n.Input(1).Type.Shape)); {
		case n.Op.Type == "Gemm" && n.Int("transB", 0) != 0:
			attrs[0].I = 0
		case n.Op.Type == "MatMul" && rank > 2:
			attrs = []*ir.Attr{ir.IntAttr("axis", -1), ir.IntAttr("batch_dims", rank-2)}
		}
		n.SetInput(1, rounded(tape, seen, n, n.Input(1), "FakeQuantWeight", attrs...))
		if method == "dynamic-int8" {
			n.SetInput(0, rounded(tape, seen, n, n.Input(0), "FakeQuantDynamic"))
		}
	}
}

// rounded is v after an operator, once for all readers.
func rounded(tape *grad.Tape, seen map[*ir.Value]*ir.Value, at *ir.Node, v *ir.Value, typ string, attrs ...*ir.Attr) *ir.Value {
	if seen[v] == nil {
		n := tape.New(ir.OpID{Domain: "mcompress", Type: typ}, []*ir.Value{v}, attrs...)
		tape.Graph().InsertBefore(at, n)
		seen[v] = n.Outputs[0]
	}
	return seen[v]
}

func isParam(tape *grad.Tape, v *ir.Value) bool {
	return slices.ContainsFunc(tape.Params, func(p *grad.Param) bool { return p.Value == v })
}
