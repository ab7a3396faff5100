package recurrent_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/recurrent"
	"github.com/mcompress/mcompress/ir"
)

// An RNN of one number that adds up its inputs.
func Example() {
	rnn := recurrent.Ops()[0]
	node := op.NewNode(ir.OpID{Type: "RNN"}, 14, []*ir.Attr{
		{Name: "hidden_size", Type: ir.AttrInt, I: 1},
		{Name: "activations", Type: ir.AttrStrings, Strings: []string{"Relu"}},
	}, nil)
	node.Consumed = []bool{true}
	one := ir.ArrayOf([]float32{1}, 1, 1, 1)
	c := &op.Call{Node: node, In: []*ir.Array{ir.ArrayOf([]float32{1, 2, 3}, 3, 1, 1), one, one}, Pool: op.NewPool(1)}
	specs, err := rnn.Shape(node, c.In)
	if err != nil {
		panic(err)
	}
	c.Out = []*ir.Array{ir.NewArray(specs[0].DType, specs[0].Shape...)}
	c.Work = ir.AlignedBytes(rnn.Work(node, c.In, 1))
	if err := rnn.Run(c); err != nil {
		panic(err)
	}
	fmt.Println(c.Out[0], ir.View[float32](c.Out[0]))
	// Output: float[3,1,1,1] [1 3 6]
}
