package linear_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/linear"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func Example() {
	matMul := linear.Ops()[0]
	a := ir.ArrayOf([]float64{1, 2, 3, 4}, 2, 2)
	c := &op.Call{Node: op.NewNode(ir.OpID{Type: "MatMul"}, 13, nil, nil), In: []*ir.Array{a, a}, Pool: op.NewPool(1)}
	specs, err := matMul.Shape(c.Node, c.In)
	if err != nil {
		panic(err)
	}
	c.Out = []*ir.Array{ir.NewArray(specs[0].DType, specs[0].Shape...)}
	if err := matMul.Run(c); err != nil {
		panic(err)
	}
	fmt.Println(c.Out[0], ir.View[float64](c.Out[0]))
	// Output: double[2,2] [7 10 15 22]
}
