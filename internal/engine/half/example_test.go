package half_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/kernel"
)

// Values beyond the range of Float16: of an activation, and of a gradient.
func Example() {
	for _, exceeds := range []bool{false, true} {
		bits, back := make([]uint16, 3), make([]float32, 3)
		half.Store(bits, []float32{1.0 / 3, 1e6, -1e6}, exceeds)
		kernel.F32FromF16(back, bits)
		fmt.Println(back)
	}
	// Output:
	// [0.33325195 65504 -65504]
	// [0.33325195 +Inf -Inf]
}
