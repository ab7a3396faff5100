package blas_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/blas"
)

func ExampleCholesky() {
	a := []float64{
		4, 2,
		2, 10,
	}
	ok := blas.Cholesky(2, a, 2)
	fmt.Println(ok, a[0], a[1], a[3])
	// Output: true 2 1 3
}
