package reduce_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/reduce"
	"github.com/mcompress/mcompress/ir"
)

// The sums of the rows of a matrix.
func Example() {
	out, err := optest.Run(reduce.Ops(), optest.Case{
		Type: "ReduceSum", Version: 13,
		In: []*ir.Array{ir.ArrayOf([]float32{1, 2, 3, 4, 5, 6}, 2, 3), ir.ArrayOf([]int64{1}, 1)},
	})
	fmt.Println(out[0], ir.View[float32](out[0]), err)
	// Output: float[2,1] [6 15] <nil>
}
