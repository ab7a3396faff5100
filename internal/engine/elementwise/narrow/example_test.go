package narrow_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/ir"
)

// Numbers as 4-bit floats, two per byte.
func Example() {
	packed := make([]byte, 2)
	narrow.EncodeFloats(packed, []float32{0.5, -3, 100}, ir.Float4E2M1, narrow.Rounding{})
	values := make([]float32, 3)
	narrow.DecodeFloats(values, packed, ir.Float4E2M1)
	fmt.Printf("%x %v\n", packed, values)
	// Output: d107 [0.5 -3 6]
}
