package precision_test

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/precision"
)

// Values between two products are narrow; inputs and outputs of the model stay float32.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	weight := func(name string, shape ...int64) *ir.Value {
		spec := ir.Spec{Name: name, DType: ir.Float, Shape: shape}
		return g.AddConst(name, &ir.Tensor{Spec: spec, Source: make(ir.Mem, spec.Bytes())})
	}
	x := g.NewValue("x")
	x.Type = &ir.Type{Elem: ir.Float}
	g.Inputs = append(g.Inputs, x)
	hidden := g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{x, weight("first", 3, 4)})})
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{hidden, weight("second", 4, 2)}))

	plan := precision.New(m, precision.Options{To: ir.Float16, KeepIO: true})
	for _, v := range g.Consts() {
		fmt.Println(v.Name, plan.Narrow(v.Uses()[0]))
	}
	plan.Apply(m, func(t *ir.Tensor) *ir.Tensor { return t })
	for n := range g.Nodes() {
		fmt.Println(n.Op)
	}
	// Output:
	// first true
	// second true
	// Cast
	// MatMul
	// Relu
	// MatMul
	// Cast
}
