package layerwise_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/calibrate/layerwise"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// The model is (x + 1)·2; the factor 2 is replaced by 3 after the sum has been observed.
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

	eval := ir.NewEval("")
	defer eval.Close()
	w, err := layerwise.New(m, eval, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Add(map[string]*ir.Array{"x": ir.ArrayOf([]float32{5, 6}, 2)}); err != nil {
		log.Fatal(err)
	}
	show := func(a *ir.Array) error {
		fmt.Println(ir.View[float32](a))
		return nil
	}
	if err := w.To(context.Background(), sum, show); err != nil {
		log.Fatal(err)
	}
	w.Replace(two, floats(3))
	err = w.Finish(context.Background(), func(outputs map[string]*ir.Array) error {
		return show(outputs[g.Outputs[0].Name])
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [6 7]
	// [18 21]
}
