package backward_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/backward"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// The gradient of Relu: that of its output where the output is positive.
func Example() {
	y, dy := ir.ArrayOf([]float32{0, 2, 0, 4}, 4), ir.ArrayOf([]float32{1, 1, -1, -1}, 4)
	out, err := optest.Run(backward.Ops(), optest.Case{Domain: "mcompress", Type: "ReluGrad", Version: 1,
		In: []*ir.Array{y, dy}})
	fmt.Println(ir.View[float32](out[0]), err)
	// Output: [0 1 0 -1] <nil>
}
