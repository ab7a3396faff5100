package optest_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

func ExampleRun() {
	out, err := optest.Run(elementwise.Ops(), optest.Case{
		Type: "LeakyRelu", Version: 16,
		In:    []*ir.Array{optest.Array[float32](-2, 3)},
		Attrs: []*ir.Attr{ir.FloatAttr("alpha", 0.5)},
	})
	fmt.Println(ir.View[float32](out[0]), err)
	// Output: [-1 3] <nil>
}
