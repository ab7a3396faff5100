package reduce_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/reduce"
	"github.com/mcompress/mcompress/ir"
)

// The sums of the rows of a matrix.
func Example() {
	axes := ir.ArrayOf([]int64{1}, 1)
	node := op.NewNode(ir.OpID{Type: "ReduceSum"}, 13, nil, nil)
	node.Consumed = []bool{true}
	in := []*ir.Array{ir.ArrayOf([]float32{1, 2, 3, 4, 5, 6}, 2, 3), axes}
	pool := op.NewPool(1)
	defer pool.Close()
	for _, o := range reduce.Ops() {
		if o.Type != "ReduceSum" || o.Since != 13 {
			continue
		}
		specs, err := o.Shape(node, in)
		if err != nil {
			panic(err)
		}
		call := &op.Call{Node: node, In: in, Pool: pool, Work: make([]byte, o.Work(node, in, 1))}
		call.Out = []*ir.Array{ir.NewArray(specs[0].DType, specs[0].Shape...)}
		if err := o.Run(call); err != nil {
			panic(err)
		}
		fmt.Println(call.Out[0], ir.View[float32](call.Out[0]))
	}
	// Output: float[2,1] [6 15]
}
