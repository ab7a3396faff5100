package grad_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// The gradient of y = relu(x + b) with respect to b, seeded by dy.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 21}}
	x := m.Graph.AddValue("x")
	m.Graph.Inputs = []*ir.Value{x}
	w := m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2, 2}},
		Source: ir.Floats(1, 0, 0, 1)})
	y := m.Graph.Insert(nil, "MatMul", []*ir.Value{x, w})
	m.Graph.AddOutput(m.Graph.Insert(nil, "Relu", []*ir.Value{y}))

	t, err := grad.New(context.Background(), m, grad.Options{Inputs: map[string]ir.Spec{"x": {DType: ir.Float,
		Shape: []int64{1, 2}}}})
	if err != nil {
		panic(err)
	}
	for _, p := range t.Params {
		fmt.Println(p.Name, p.Tensor.Shape)
	}
	// Output: w [2 2]
}
