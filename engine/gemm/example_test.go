package gemm_test

import (
	"fmt"

	"github.com/mcompress/mcompress/engine/gemm"
	"github.com/mcompress/mcompress/engine/op"
)

// A fully connected layer: a constant weight, packed once, and a bias for each column.
func ExampleFloat() {
	pool := op.NewPool(2)
	defer pool.Close()
	weight := gemm.PackFloat(pool, gemm.Rows([]float32{1, 2, 3, 4, 5, 6}, 3), 2, 3)

	shape := gemm.Shape{M: 2, N: 3, K: 2}
	work := make([]byte, gemm.FloatWork(shape, 1, pool.Workers(), true))
	c := make([]float32, 6)
	gemm.Float(pool, shape, work, gemm.FloatProduct{
		A: gemm.Rows([]float32{1, 0, 1, 1}, 2), Packed: weight, C: c, Stride: 3,
		Epilogue: gemm.Epilogue{Bias: gemm.Matrix[float32]{Data: []float32{10, 20, 30}, Col: 1}},
	})
	fmt.Println(c)
	// Output: [11 22 33 15 27 39]
}
