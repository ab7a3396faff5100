package random_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/random"
	"github.com/mcompress/mcompress/ir"
)

// Shape inference of one row of the table, like package engine.
func Example() {
	like := ir.ArrayOf([]float32{1, 2, 3}, 3)
	for _, row := range random.Ops() {
		if row.Type == "RandomUniformLike" {
			specs, err := row.Shape(op.NewNode(ir.OpID{Type: row.Type}, 22, nil, nil), []*ir.Array{like})
			fmt.Println(specs[0], err)
		}
	}
	// Output: float[3] <nil>
}
