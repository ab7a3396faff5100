package kernel_test

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// A row of weights quantized to symmetric int8 and dequantized.
func Example() {
	row := []float32{0.5, -1.27, 0.004, 0}
	scale := math.Float32frombits(kernel.AbsMaxBits(row)) / 127

	codes := make([]byte, len(row))
	kernel.Quantize(codes, row, scale, 0, kernel.IntRange{Lo: -127, Hi: 127})
	back := make([]float32, len(row))
	kernel.Dequantize(back, codes, true, scale, 0)

	for i, c := range codes {
		fmt.Printf("%g -> %d -> %.2f\n", row[i], int8(c), back[i])
	}
	// Output:
	// 0.5 -> 50 -> 0.50
	// -1.27 -> -127 -> -1.27
	// 0.004 -> 0 -> 0.00
	// 0 -> 0 -> 0.00
}

// Sparse elements are stored as a mask and the nonzero values.
func ExampleExpand() {
	data := []byte{0, 0, 7, 0, 9, 0, 0, 0, 5}
	mask := make([]byte, 2)
	count := kernel.NonZero(mask, data, 1)
	values := kernel.Compress(nil, data, 1)
	fmt.Printf("%d values %v, mask %08b\n", count, values, mask)

	back := make([]byte, len(data))
	kernel.Expand(back, mask, values, 1)
	fmt.Println(back)
	// Output:
	// 3 values [7 9 5], mask [00010100 00000001]
	// [0 0 7 0 9 0 0 0 5]
}
