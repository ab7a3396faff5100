package signal_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/signal"
	"github.com/mcompress/mcompress/ir"
)

// Running one row of the table, like package engine.
func Example() {
	in := []*ir.Array{ir.ArrayOf([]int64{4})}
	for _, row := range signal.Ops() {
		if row.Type != "HannWindow" {
			continue
		}
		n := op.NewNode(ir.OpID{Type: "HannWindow"}, 17, nil, nil)
		specs, err := row.Shape(n, in)
		if err != nil {
			panic(err)
		}
		out := ir.NewArray(specs[0].DType, specs[0].Shape...)
		if err := row.Run(&op.Call{Node: n, In: in, Out: []*ir.Array{out}}); err != nil {
			panic(err)
		}
		fmt.Println(ir.View[float32](out))
	}
	// Output: [0 0.5 1 0.5]
}
