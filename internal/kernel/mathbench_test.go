package kernel

import (
	"fmt"
	"testing"
)

// The benchmarks of vector mathematics count the bytes that are read, and stay in the L1 cache, except those of
// arithmetic, which stay in the L2 cache: waiting for it would hide the rest.

func BenchmarkFunctions(b *testing.B) {
	x := benchFloats()[:1<<12]
	dst := make([]float32, len(x))
	for _, f := range unaryFunctions {
		b.Run(f.name, func(b *testing.B) { repeat(b, 4*len(x), func() { f.run(dst, x) }) })
	}
}

func BenchmarkFunctionTwins(b *testing.B) {
	x := benchFloats()[:1<<12]
	dst := make([]float32, len(x))
	for _, f := range unaryFunctions {
		b.Run(f.name, func(b *testing.B) { repeat(b, 4*len(x), func() { each(dst, x, f.twin) }) })
	}
}

func BenchmarkArithmetic(b *testing.B) {
	const n = 1 << 14
	x := benchFloats()
	dst, y, x := make([]float32, n), x[n:2*n], x[:n]
	b.Run("Copy", func(b *testing.B) { repeat(b, 4*n, func() { copy(dst, x) }) })
	for _, f := range binaryFunctions {
		b.Run(f.name, func(b *testing.B) { repeat(b, 8*n, func() { f.run(dst, x, y) }) })
	}
	for _, f := range scalarFunctions {
		b.Run(f.name, func(b *testing.B) { repeat(b, 4*n, func() { f.run(dst, x, 0.75) }) })
	}
}

func BenchmarkRows(b *testing.B) {
	for _, cols := range []int{64, 128, 768, 4096} {
		x := benchFloats()[:cols]
		dst := make([]float32, cols)
		sums := make([]int32, cols)
		for _, f := range []struct {
			name string
			run  func()
		}{
			{"ReduceSum", func() { ReduceSum(x) }},
			{"ReduceMax", func() { ReduceMax(x) }},
			{"Dot", func() { Dot(x, x) }},
			{"Softmax", func() { Softmax(dst, x) }},
			{"LogSoftmax", func() { LogSoftmax(dst, x) }},
			{"LayerNorm", func() { LayerNorm(dst, x, x, x, 1e-5) }},
			{"RMSNorm", func() { RMSNorm(dst, x, x, 1e-5) }},
			{"DequantizeInt32Cols", func() { DequantizeInt32Cols(dst, sums, x, x) }},
		} {
			b.Run(fmt.Sprint(f.name, "/", cols), func(b *testing.B) { repeat(b, 4*cols, f.run) })
		}
	}
}
