package coupling_test

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// Two successive layers: the second consumes the channels of the first.
func Example() {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	weight := func(name string, shape ...int64) *ir.Value {
		spec := ir.Spec{Name: name, DType: ir.Float, Shape: shape}
		return g.AddConst(name, &ir.Tensor{Spec: spec, Source: make(ir.Mem, spec.Bytes())})
	}
	x := g.NewValue("x")
	g.Inputs = append(g.Inputs, x)
	hidden := g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{x, weight("first", 3, 4)})})
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{hidden, weight("second", 4, 2)}))

	eval := ir.NewEval("")
	defer eval.Close()
	s := &pass.Step{Model: m, Eval: eval}
	plan, err := coupling.Find(s, func(*ir.Value) (none pass.Reason) { return })
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, group := range plan.Groups() {
		fmt.Printf("%d channels of %s: %q\n", len(group.Classes), group.Sources[0].Value.Name, group.Reason.Code)
	}
	channels := plan.Groups()[0].Classes
	for _, kept := range plan.Remove(map[coupling.Channel]bool{channels[0]: true, channels[2]: true}) {
		fmt.Println(kept.Value.Name, kept)
	}
	// Output:
	// 4 channels of first: ""
	// 2 channels of second: "channels-output"
	// first 2 of 4 on axis 1 kept
	// second 2 of 4 on axis 0 kept
}
