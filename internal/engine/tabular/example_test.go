package tabular_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/tabular"
	"github.com/mcompress/mcompress/ir"
)

// Numbers compared with a threshold of 2.
func Example() {
	out, err := optest.Run(tabular.Ops(), optest.Case{
		Domain: "ai.onnx.ml", Type: "Binarizer", Version: 1,
		In:    []*ir.Array{ir.ArrayOf([]float32{1, 3}, 1, 2)},
		Attrs: []*ir.Attr{ir.FloatAttr("threshold", 2)},
	})
	fmt.Println(ir.View[float32](out[0]), err)
	// Output: [0 1] <nil>
}
