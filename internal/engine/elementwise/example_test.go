package elementwise_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// A column added to a row.
func Example() {
	out, err := optest.Run(elementwise.Ops(), optest.Case{
		Type: "Add", Version: 14,
		In: []*ir.Array{ir.ArrayOf([]int32{10, 20}, 2, 1), ir.ArrayOf([]int32{1, 2, 3}, 3)},
	})
	fmt.Println(out[0], ir.View[int32](out[0]), err)
	// Output: int32[2,3] [11 12 13 21 22 23] <nil>
}
