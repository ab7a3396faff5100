package movement_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/movement"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// The transpose of a matrix.
func Example() {
	out, err := optest.Run(movement.Ops(), optest.Case{
		Type: "Transpose", Version: 13,
		In: []*ir.Array{ir.ArrayOf([]float32{1, 2, 3, 4, 5, 6}, 2, 3)},
	})
	fmt.Println(out[0], ir.View[float32](out[0]), err)
	// Output: float[3,2] [1 4 2 5 3 6] <nil>
}
