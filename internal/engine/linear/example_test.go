package linear_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/linear"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// The square of a matrix.
func Example() {
	a := ir.ArrayOf([]float64{1, 2, 3, 4}, 2, 2)
	out, err := optest.Run(linear.Ops(), optest.Case{Type: "MatMul", Version: 13, In: []*ir.Array{a, a}})
	fmt.Println(out[0], ir.View[float64](out[0]), err)
	// Output: double[2,2] [7 10 15 22] <nil>
}
