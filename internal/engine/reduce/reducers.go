package reduce

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// integer are the types that integers are computed in. Smaller ones are converted block by block.
type integer interface{ int64 | uint64 }

type floatElement interface{ float32 | float64 }

type numeric interface{ integer | floatElement }

// each makes a fold from a function that adds one element.
func each[T ir.Element, A any](zero A, add func(A, T) A, join func(a, b A) A, done func(A, int) T) fold[T, A] {
	return fold[T, A]{
		zero: zero,
		row: func(acc A, x []T) A {
			for _, v := range x {
				acc = add(acc, v)
			}
			return acc
		},
		cols: func(acc []A, x []T) {
			for i, v := range x {
				acc[i] = add(acc[i], v)
			}
		},
		join: join,
		done: done,
	}
}

// extreme selects one of the elements.
func extreme[T ir.Element](zero T, pick func(a, b T) T) fold[T, T] {
	return each(zero, pick, pick, func(acc T, _ int) T { return acc })
}

// realFold sums, or multiplies, in float64.
func realFold[T floatElement](name string) fold[T, float64] {
	f := summing[T, float64](asIs[T])
	switch name {
	case "ReduceMean":
		f.done = func(a float64, n int) T { return T(a / float64(n)) }
	case "ReduceLogSum":
		f.done = func(a float64, _ int) T { return T(math.Log(a)) }
	case "ReduceL1":
		f = each(0, func(a float64, v T) float64 { return a + math.Abs(float64(v)) }, sum[float64], asIs[T])
	case "ReduceSumSquare":
		f = squares[T]()
	case "ReduceL2":
		f = squares[T]()
		f.done = func(a float64, _ int) T { return T(math.Sqrt(a)) }
	case "ReduceProd":
		f = each(1, func(a float64, v T) float64 { return a * float64(v) }, product[float64], asIs[T])
	}
	return f
}

// summing is a fold without calls in its loops.
func summing[T, A numeric](done func(A, int) T) fold[T, A] {
	return fold[T, A]{
		row: func(acc A, x []T) A {
			for _, v := range x {
				acc += A(v)
			}
			return acc
		},
		cols: func(acc []A, x []T) {
			acc = acc[:len(x)]
			for i, v := range x {
				acc[i] += A(v)
			}
		},
		join: sum[A],
		done: done,
	}
}

func squares[T floatElement]() fold[T, float64] {
	f := summing[T, float64](asIs[T])
	f.row = func(acc float64, x []T) float64 {
		for _, v := range x {
			acc += float64(v) * float64(v)
		}
		return acc
	}
	f.cols = func(acc []float64, x []T) {
		acc = acc[:len(x)]
		for i, v := range x {
			acc[i] += float64(v) * float64(v)
		}
	}
	return f
}

func asIs[T floatElement](a float64, _ int) T { return T(a) }

func sum[T numeric](a, b T) T { return a + b }

func product[T numeric](a, b T) T { return a * b }

// intFold wraps around like the element type. Sums of unsigned integers have the bits of signed ones.
func intFold[T integer](name string) fold[T, int64] {
	done := func(a int64, _ int) T { return T(a) }
	switch name {
	case "ReduceMean":
		done = intMean[T]()
	case "ReduceL1":
		return each(0, func(a int64, v T) int64 {
			if v < 0 {
				return a - int64(v)
			}
			return a + int64(v)
		}, sum[int64], done)
	case "ReduceSumSquare":
		return each(0, func(a int64, v T) int64 { return a + int64(v)*int64(v) }, sum[int64], done)
	case "ReduceProd":
		return each(1, func(a int64, v T) int64 { return a * int64(v) }, product[int64], done)
	}
	return summing[T, int64](done)
}

// intMean truncates; the mean of no elements is 0.
func intMean[T integer]() func(int64, int) T {
	// Sums wrap around alike, but a quotient depends on the sign bit.
	unsigned := ^T(0) > 0
	return func(a int64, n int) T {
		switch {
		case n == 0:
			return 0
		case unsigned:
			return T(uint64(a) / uint64(n))
		}
		return T(a / int64(n))
	}
}

// reduceSingles uses loops of package kernel for the rows of the common reductions.
func reduceSingles(c *op.Call, l layout) error {
	f := realFold[float32](c.ID.Type)
	switch c.ID.Type {
	case "ReduceMax":
		f := extreme(float32(math.Inf(-1)), func(a, b float32) float32 { return max(a, b) })
		f.row = func(acc float32, x []float32) float32 { return max(acc, kernel.ReduceMax(x)) }
		f.cols = func(acc, x []float32) { kernel.Max(acc, acc, x) }
		return run(c, l, c.In[0], f)
	case "ReduceMin":
		f := extreme(float32(math.Inf(1)), func(a, b float32) float32 { return min(a, b) })
		f.row = func(acc float32, x []float32) float32 { return min(acc, kernel.ReduceMin(x)) }
		f.cols = func(acc, x []float32) { kernel.Min(acc, acc, x) }
		return run(c, l, c.In[0], f)
	case "ReduceLogSumExp":
		f := logSumExp[float32]()
		f.row = scaledSum.plusRow
		return run(c, l, c.In[0], f)
	case "ReduceSum", "ReduceMean", "ReduceLogSum":
		f.row = func(acc float64, x []float32) float64 { return acc + kernel.ReduceSum(x) }
	case "ReduceL2", "ReduceSumSquare":
		f.row = func(acc float64, x []float32) float64 { return acc + kernel.ReduceSumSquare(x) }
	}
	return run(c, l, c.In[0], f)
}
