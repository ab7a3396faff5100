package elementwise_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A column added to a row.
func Example() {
	node := op.NewNode(ir.OpID{Type: "Add"}, 14, nil, nil)
	node.Consumed = []bool{true}
	in := []*ir.Array{ir.ArrayOf([]int32{10, 20}, 2, 1), ir.ArrayOf([]int32{1, 2, 3}, 3)}
	pool := op.NewPool(1)
	defer pool.Close()
	for _, o := range elementwise.Ops() {
		if o.Type != "Add" {
			continue
		}
		specs, err := o.Shape(node, in)
		if err != nil {
			panic(err)
		}
		call := &op.Call{Node: node, In: in, Pool: pool, Work: make([]byte, o.Work(node, in, 1))}
		call.Out = []*ir.Array{ir.NewArray(specs[0].DType, specs[0].Shape...)}
		if err := o.Run(call); err != nil {
			panic(err)
		}
		fmt.Println(call.Out[0], ir.View[int32](call.Out[0]))
	}
	// Output: int32[2,3] [11 12 13 21 22 23]
}
