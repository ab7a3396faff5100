package recurrent_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/recurrent"
	"github.com/mcompress/mcompress/ir"
)

// An RNN of one number that adds up its inputs.
func Example() {
	one := ir.ArrayOf([]float32{1}, 1, 1, 1)
	out, err := optest.Run(recurrent.Ops(), optest.Case{
		Type: "RNN", Version: 14,
		In: []*ir.Array{ir.ArrayOf([]float32{1, 2, 3}, 3, 1, 1), one, one},
		Attrs: []*ir.Attr{
			ir.IntAttr("hidden_size", 1),
			{Name: "activations", Type: ir.AttrStrings, Strings: []string{"Relu"}},
		},
	})
	fmt.Println(out[0], ir.View[float32](out[0]), err)
	// Output: float[3,1,1,1] [1 3 6] <nil>
}
