package train_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/train"
	"github.com/mcompress/mcompress/ir"
)

// Shape inference of SGDUpdate, and the inputs that it writes.
func Example() {
	w, hyper := ir.NewArray(ir.Float, 2, 3), ir.NewArray(ir.Float, 4)
	for _, row := range train.Ops() {
		if row.Type == "SGDUpdate" {
			specs, err := row.Shape(op.NewNode(ir.OpID{Domain: row.Domain, Type: row.Type}, 1, nil, nil),
				[]*ir.Array{w, w, hyper})
			fmt.Println(specs[0], err, row.Writes)
		}
	}
	// Output: float[1] <nil> [0 2]
}
