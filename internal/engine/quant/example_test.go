package quant_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/quant"
	"github.com/mcompress/mcompress/ir"
)

// Floats quantized with scale 0.5 and zero point 128: halves are rounded to even.
func Example() {
	pool := op.NewPool(2)
	defer pool.Close()
	node := op.NewNode(ir.OpID{Type: "QuantizeLinear"}, 21, nil, nil)
	in := []*ir.Array{
		ir.ArrayOf([]float32{-100, -0.25, 0, 0.25, 0.75, 1}, 6),
		ir.ArrayOf([]float32{0.5}),
		ir.ArrayOf([]uint8{128}),
	}
	for _, row := range quant.Ops() {
		if row.Type != "QuantizeLinear" || row.Domain != "" {
			continue
		}
		specs, err := row.Shape(node, in)
		if err != nil {
			panic(err)
		}
		out := ir.NewArray(specs[0].DType, specs[0].Shape...)
		if err := row.Run(&op.Call{Node: node, In: in, Out: []*ir.Array{out}, Pool: pool}); err != nil {
			panic(err)
		}
		fmt.Println(out.Data)
	}
	// Output: [0 128 128 128 130 130]
}
