package attention

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// arithmetic is the set of functions that attention uses for numbers of type T.
type arithmetic[T Float] struct {
	// compare stores factor·q·kᵀ as rows of c, multiply a·b.
	compare  func(work []byte, s gemm.Shape, q, k gemm.Matrix[T], c []T, stride int, factor T)
	multiply func(work []byte, s gemm.Shape, a, b gemm.Matrix[T], c []T, stride int)
	work     func(rows int, s Shape) int64 // scratch memory of both in bytes
	softmax  func(row []T)
	cap      func(row []T, limit T) // limit·tanh(x/limit)
	maximum  func(row []T) T        // the maximum, NaN if any element is
	lanes    int                    // elements of a vector of softmax
}

func arithmeticOf[T Float]() arithmetic[T] {
	var zero T
	if _, single := any(zero).(float32); single {
		return any(singles()).(arithmetic[T])
	}
	return any(doubles()).(arithmetic[T])
}

func singles() arithmetic[float32] {
	return arithmetic[float32]{
		compare: compareSingles,
		multiply: func(work []byte, s gemm.Shape, a, b gemm.Matrix[float32], c []float32, stride int) {
			gemm.Float(gemm.CallerPool{}, s, work, gemm.FloatProduct{A: a, B: b, C: c, Stride: stride})
		},
		work: func(rows int, s Shape) int64 {
			scores := gemm.FloatWork(gemm.Shape{M: rows, N: s.Keys, K: s.Size}, 1, 1, false)
			return max(scores, gemm.FloatWork(gemm.Shape{M: rows, N: s.Value, K: s.Keys}, 1, 1, false))
		},
		softmax: func(row []float32) { kernel.Softmax(row, row) },
		cap: func(row []float32, limit float32) {
			kernel.DivScalar(row, row, limit)
			kernel.Tanh(row, row)
			kernel.MulScalar(row, row, limit)
		},
		maximum: kernel.ReduceMax,
		lanes:   8,
	}
}

// fewQueries is the number of queries up to which packing all keys takes longer than multiplying them one by one.
const fewQueries = 4

func compareSingles(work []byte, s gemm.Shape, q, k gemm.Matrix[float32], c []float32, stride int, factor float32) {
	// Decoding: packing keys that are read once takes longer than the products. A small GPT-2 decodes 5,600 instead of
	// 4,650 tokens per second.
	if s.M <= fewQueries && q.Col == 1 && k.Col == 1 {
		for i := range s.M {
			kernel.DotRows(c[i*stride:][:s.N], q.Data[i*q.Row:][:s.K], k.Data, k.Row, factor)
		}
		return
	}
	if factor == 0 { // an Alpha of 0 means 1 in package gemm
		q = gemm.Matrix[float32]{Data: make([]float32, 1)}
	}
	gemm.Float(gemm.CallerPool{}, s, work, gemm.FloatProduct{A: q, B: k.T(), C: c, Stride: stride,
		Epilogue: gemm.Epilogue{Alpha: factor}})
}

func doubles() arithmetic[float64] {
	multiply := func(_ []byte, s gemm.Shape, a, b gemm.Matrix[float64], c []float64, stride int) {
		gemm.Plain(gemm.CallerPool{}, s, a, b, c, stride)
	}
	return arithmetic[float64]{
		compare: func(work []byte, s gemm.Shape, q, k gemm.Matrix[float64], c []float64, stride int, factor float64) {
			multiply(work, s, q, k.T(), c, stride)
			for i := range s.M {
				scale(c[i*stride:][:s.N], factor)
			}
		},
		multiply: multiply,
		work:     func(int, Shape) int64 { return 0 },
		softmax:  Softmax64[float64],
		cap: func(row []float64, limit float64) {
			for i, x := range row {
				row[i] = limit * math.Tanh(x/limit)
			}
		},
		maximum: maximum[float64],
		lanes:   1,
	}
}

func scale(x []float64, factor float64) {
	for i := range x {
		x[i] *= factor
	}
}

// maximum is the maximum, NaN if any element is.
func maximum[T Float](row []T) T {
	top := -inf[T]()
	for _, x := range row {
		top = max(top, x)
	}
	return top
}

// Softmax64 is softmax of one row in place, with exponentials and their sum in float64.
func Softmax64[T Float](row []T) {
	top, sum := float64(maximum(row)), 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	for i, x := range row {
		row[i] = T(math.Exp(float64(x)-top) / sum)
	}
}
