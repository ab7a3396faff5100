package quant_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/quant"
	"github.com/mcompress/mcompress/ir"
)

// Floats quantized with scale 0.5 and zero point 128: halves are rounded to even.
func Example() {
	out, err := optest.Run(quant.Ops(), optest.Case{
		Type: "QuantizeLinear", Version: 21,
		In: []*ir.Array{
			ir.ArrayOf([]float32{-100, -0.25, 0, 0.25, 0.75, 1}, 6),
			ir.ArrayOf([]float32{0.5}),
			ir.ArrayOf([]uint8{128}),
		},
	})
	fmt.Println(out[0].Data, err)
	// Output: [0 128 128 128 130 130] <nil>
}
