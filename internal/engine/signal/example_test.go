package signal_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/signal"
	"github.com/mcompress/mcompress/ir"
)

// A Hann window of four samples.
func Example() {
	out, err := optest.Run(signal.Ops(), optest.Case{
		Type: "HannWindow", Version: 17,
		In: []*ir.Array{ir.ArrayOf([]int64{4})},
	})
	fmt.Println(ir.View[float32](out[0]), err)
	// Output: [0 0.5 1 0.5] <nil>
}
