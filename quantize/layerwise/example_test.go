package layerwise_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/layerwise"
)

// The model is (x + 1)·2; what is added becomes 3 once the sum has been seen.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	g.Inputs = append(g.Inputs, x)
	floats := func(v float32) *ir.Tensor {
		return &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Floats(v)}
	}
	sum := g.Insert(nil, "Add", []*ir.Value{x, g.AddConst("one", floats(1))})
	two := g.AddConst("two", floats(2))
	g.AddOutput(g.Insert(nil, "Mul", []*ir.Value{sum, two}))

	w, err := layerwise.New(m, []map[string]*ir.Array{{"x": ir.ArrayOf([]float32{5, 6}, 2)}}, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	seen, err := w.To(context.Background(), sum)
	if err != nil {
		log.Fatal(err)
	}
	w.Replace(two, floats(3))
	out, err := w.Finish(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ir.View[float32](seen[0]), ir.View[float32](out[0][g.Outputs[0].Name]))
	// Output: [6 7] [18 21]
}
