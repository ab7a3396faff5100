package kernel_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Rows are processed one by one, in place.
func ExampleSoftmax() {
	scores := []float32{
		1, 2, 3,
		1000, 1000, -1000,
	}
	for at := 0; at < len(scores); at += 3 {
		row := scores[at : at+3]
		kernel.Softmax(row, row)
		fmt.Printf("%.3f\n", row)
	}
	// Output:
	// [0.090 0.245 0.665]
	// [0.500 0.500 0.000]
}
