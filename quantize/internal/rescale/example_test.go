package rescale_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// The two columns of a product, and its bias with them, are doubled and halved.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	constant := func(name string, shape []int64, x ...float32) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: shape}, Source: ir.Floats(x...)})
	}
	x := g.NewValue("x")
	g.Inputs = append(g.Inputs, x)
	product := g.Insert(nil, "MatMul", []*ir.Value{x, constant("w", []int64{3, 2}, 1, 2, 3, 4, 5, 6)})
	g.AddOutput(g.Insert(nil, "Add", []*ir.Value{product, constant("b", []int64{2}, 7, 8)}))

	eval := ir.NewEval("")
	defer eval.Close()
	s := &pass.Step{Model: m, Eval: eval}
	e := rescale.New(s)
	l, reason := e.Layer(product.Producer())
	if !reason.None() {
		fmt.Println(reason)
		return
	}
	if err := l.ScaleOutputs(context.Background(), []float64{2, 0.5}); err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range g.Consts() {
		b, err := eval.ReadAll(context.Background(), v.Const)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(v.Name, kernel.Words[float32](b))
	}
	peaks, err := l.Peaks(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("largest weights by input:", peaks.Inputs())
	// Output:
	// w [2 1 6 2 10 3]
	// b [14 4]
	// largest weights by input: [2 6 10]
}
