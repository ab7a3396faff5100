package movement_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/movement"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Running one row of the table, like package engine.
func Example() {
	pool := op.NewPool(1)
	defer pool.Close()
	in := []*ir.Array{ir.ArrayOf([]float32{1, 2, 3, 4, 5, 6}, 2, 3)}
	for _, row := range movement.Ops() {
		if row.Type != "Transpose" {
			continue
		}
		n := op.NewNode(ir.OpID{Type: "Transpose"}, 13, nil, nil)
		specs, err := row.Shape(n, in)
		if err != nil {
			panic(err)
		}
		out := ir.NewArray(specs[0].DType, specs[0].Shape...)
		if err := row.Run(&op.Call{Node: n, In: in, Out: []*ir.Array{out}, Pool: pool}); err != nil {
			panic(err)
		}
		fmt.Println(out, ir.View[float32](out))
	}
	// Output: float[3,2] [1 4 2 5 3 6]
}
