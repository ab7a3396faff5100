package activation_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/activation"
)

func Example() {
	clip, err := activation.Of("Clip", []float32{0, 6})
	if err != nil {
		panic(err)
	}
	row := []float32{-1, 3, 9}
	clip(row)
	fmt.Println(row)
	// Output: [0 3 6]
}
