package number_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
)

func Example() {
	a := ir.NewArray(ir.BFloat16, 2)
	number.Write(a, 0, []float64{1, 0.1})
	xs := make([]float64, 2)
	number.Read(xs, a, 0)
	fmt.Println(xs)
	// Output: [1 0.10009765625]
}
