package backward_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/backward"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// The gradient of Relu: that of its output where the output is positive.
func Example() {
	pool := op.NewPool(1)
	defer pool.Close()
	for _, o := range backward.Ops() {
		if o.Type != "ReluGrad" {
			continue
		}
		y, dy := ir.ArrayOf([]float32{0, 2, 0, 4}, 4), ir.ArrayOf([]float32{1, 1, -1, -1}, 4)
		c := &op.Call{In: []*ir.Array{y, dy}, Out: []*ir.Array{ir.NewArray(ir.Float, 4)}, Pool: pool}
		if err := o.Run(c); err != nil {
			panic(err)
		}
		fmt.Println(ir.View[float32](c.Out[0]))
	}
	// Output: [0 1 0 -1]
}
