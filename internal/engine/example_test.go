package engine_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// A model of one node, run in process.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{Param: "n"}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	relu := m.Graph.NewNode(ir.OpID{Type: "Relu"}, []*ir.Value{x})
	y := m.Graph.AddValue("y")
	relu.SetOutputs(y)
	m.Graph.Append(relu)
	m.Graph.AddOutput(y)

	ctx := context.Background()
	s, err := engine.Open(ctx, m, engine.Options{Workers: 2})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	out, err := s.Run(ctx, map[string]*ir.Array{"x": ir.ArrayOf([]float32{-1, 2, -3}, 3)}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(out["y"], ir.View[float32](out["y"]))
	// Output: float[3] [0 2 0]
}
