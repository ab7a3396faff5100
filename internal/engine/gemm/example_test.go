package gemm_test

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A fully connected layer: a constant weight, packed once, and a bias per column.
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

// A convolution of a signal with two kernels of size three. Column n of B is the window of output n, and is written on
// demand: im2col without its memory.
func ExamplePanels() {
	pool := op.NewPool(2)
	defer pool.Close()
	signal := []float32{1, 2, 4, 8, 16}
	patches := func(dst []float32, k0, k1, n0, n1 int) {
		for k := k0; k < k1; k++ {
			copy(dst[(k-k0)*16:], signal[n0+k:n1+k])
		}
	}

	shape := gemm.Shape{M: 2, N: 3, K: 3}
	work := make([]byte, gemm.FloatWork(shape, 1, pool.Workers(), false))
	c := make([]float32, 6)
	gemm.Float(pool, shape, work, gemm.FloatProduct{
		A: gemm.Rows([]float32{1, 1, 1, 1, 0, -1}, 3), Panels: patches, C: c, Stride: 3,
	})
	fmt.Println(c)
	// Output: [7 14 28 -3 -6 -12]
}

// DynamicQuantizeLinear → MatMulInteger → Cast → Mul fused: sums are converted to floats as they are computed.
func ExampleInt() {
	pool := op.NewPool(2)
	defer pool.Close()
	weight := gemm.PackInt(pool, gemm.Rows([]byte{1, 0xff, 2, 0xfe}, 2), 2, 2, true) // int8: 1 -1 / 2 -2

	shape := gemm.Shape{M: 1, N: 2, K: 2}
	work := make([]byte, gemm.IntWork(shape, 1, pool.Workers(), true, true))
	y := make([]float32, 2)
	gemm.Int(pool, shape, work, gemm.IntProduct{
		A: gemm.Rows([]byte{130, 131}, 2), AZero: []int32{128}, Packed: weight,
		Finish: gemm.EachRow(func(row, col int, sums []int32) {
			for j, sum := range sums {
				y[row*2+col+j] = float32(sum) * 0.5
			}
		}),
	})
	fmt.Println(y)
	// Output: [4 -4]
}
