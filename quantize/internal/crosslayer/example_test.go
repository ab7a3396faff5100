package crosslayer_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/crosslayer"
)

// equalize is the option struct of a method that only equalizes.
type equalize struct{ pass.Selection }

func (equalize) Method() *pass.Method                        { return &pass.Method{Name: "equalize"} }
func (equalize) Run(ctx context.Context, s *pass.Step) error { return crosslayer.Equalize(ctx, s) }

// The channels of the first layer differ widely in size, which the second layer compensates. Afterwards both
// have equal maximum weights.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	weight := func(name string, x ...float32) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: []int64{2, 2}},
			Source: ir.Floats(x...)})
	}
	x := g.NewValue("x")
	g.Inputs = append(g.Inputs, x)
	hidden := g.Insert(nil, "Relu",
		[]*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{x, weight("first", 16, -0.25, 8, 0.125)})})
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{hidden, weight("second", 1, -0.5, 4, 2)}))

	eval := ir.NewEval("")
	defer eval.Close()
	s := &pass.Step{Model: m, Eval: eval}
	if _, err := pass.Run(context.Background(), s.Model, s.Eval, s.Env, []pass.Options{equalize{}}); err != nil {
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
	// Output:
	// first [4 -1 2 0.5]
	// second [4 -2 1 0.5]
}
