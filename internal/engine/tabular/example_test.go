package tabular_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/tabular"
	"github.com/mcompress/mcompress/ir"
)

// Running one row of the table, like package engine.
func Example() {
	in := []*ir.Array{ir.ArrayOf([]float32{1, 3}, 1, 2)}
	attrs := []*ir.Attr{{Name: "threshold", Type: ir.AttrFloat, F: 2}}
	for _, row := range tabular.Ops() {
		if row.Type != "Binarizer" {
			continue
		}
		out := ir.NewArray(ir.Float, 1, 2)
		if err := row.Run(&op.Call{Node: op.NewNode(ir.OpID{Type: row.Type}, 1, attrs, nil), In: in, Out: []*ir.Array{out}}); err != nil {
			panic(err)
		}
		fmt.Println(ir.View[float32](out))
	}
	// Output: [0 1]
}
