package conv_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// MaxPool with a window of two.
func Example() {
	out, err := optest.Run(conv.Ops(), optest.Case{
		Type: "MaxPool", Version: 22,
		In:    []*ir.Array{ir.ArrayOf([]float32{3, 1, 4, 1, 5}, 1, 1, 5)},
		Attrs: []*ir.Attr{ir.IntsAttr("kernel_shape", 2)},
	})
	fmt.Println(ir.View[float32](out[0]), err)
	// Output: [3 4 4 5] <nil>
}
