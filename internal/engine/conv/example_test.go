package conv_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A row of the table: shape inference and run of a MaxPool over pairs.
func Example() {
	pool := op.NewPool(2)
	defer pool.Close()
	attrs := []*ir.Attr{{Name: "kernel_shape", Type: ir.AttrInts, Ints: []int64{2}}}
	node := op.NewNode(ir.OpID{Type: "MaxPool"}, 22, attrs, nil)
	in := []*ir.Array{ir.ArrayOf([]float32{3, 1, 4, 1, 5}, 1, 1, 5)}
	for _, row := range conv.Ops() {
		if row.Type != "MaxPool" {
			continue
		}
		specs, err := row.Shape(node, in)
		if err != nil {
			panic(err)
		}
		out := ir.NewArray(specs[0].DType, specs[0].Shape...)
		if err := row.Run(&op.Call{Node: node, In: in, Out: []*ir.Array{out}, Pool: pool}); err != nil {
			panic(err)
		}
		fmt.Println(ir.View[float32](out))
	}
	// Output: [3 4 4 5]
}
