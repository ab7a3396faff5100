package op_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A row of the table: x + 1, in place if possible.
func Example() {
	increment := op.Op{
		Domain: "example", Type: "Increment", Since: 1,
		Shape:   op.InputType(0),
		InPlace: []int{0},
		Run: func(c *op.Call) error {
			x, y := ir.View[float32](c.In[0]), ir.View[float32](c.Out[0])
			for i := range x {
				y[i] = x[i] + 1
			}
			return nil
		},
	}
	x := ir.ArrayOf([]float32{1, 2}, 2)
	call := &op.Call{In: []*ir.Array{x}, Out: []*ir.Array{ir.NewArray(ir.Float, 2)}}
	if err := increment.Run(call); err != nil {
		panic(err)
	}
	fmt.Println(ir.View[float32](call.Out[0]))
	// Output: [2 3]
}
