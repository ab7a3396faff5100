package blas_test

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mcompress/mcompress/internal/blas"
)

func Example() {
	blas.Register() // gonum's factorizations use it from now on
	var c mat.Cholesky
	ok := c.Factorize(mat.NewSymDense(2, []float64{4, 2, 2, 10}))
	u := c.RawU()
	fmt.Println(ok, u.At(0, 0), u.At(0, 1), u.At(1, 1))
	// Output: true 2 1 3
}
