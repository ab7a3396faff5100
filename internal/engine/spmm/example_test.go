package spmm_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A fully connected layer whose weight of 2×3 elements has two that are not zero.
func ExampleRight() {
	pool := op.NewPool(2)
	defer pool.Close()
	shape := gemm.Shape{M: 2, N: 3, K: 2}
	weight := gemm.Rows([]float32{0, 2, 0, 0, 0, 6}, 3)
	sparse := spmm.Pack(pool, shape.N, shape.K, spmm.Dense(weight.T(), shape.K), kernel.SparseValues{})

	work := make([]byte, spmm.Work(shape.N, shape.M, pool.Workers()))
	c := make([]float32, 6)
	spmm.Right(pool, sparse, shape, work, gemm.FloatProduct{
		A: gemm.Rows([]float32{1, 0, 1, 1}, 2), C: c, Stride: 3,
		Epilogue: gemm.Epilogue{Bias: gemm.Matrix[float32]{Data: []float32{10, 20, 30}, Col: 1}},
	})
	fmt.Println(c)
	// Output: [10 22 30 10 22 36]
}
