package reduce

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A scaledSum is sum·e^top: a sum of exponentials that does not overflow.
type scaledSum struct{ top, sum float64 }

func logSumExp[T floatElement]() fold[T, scaledSum] {
	zero := scaledSum{top: math.Inf(-1)}
	return each(zero, func(a scaledSum, v T) scaledSum { return a.plus(scaledSum{float64(v), 1}) }, scaledSum.plus,
		func(a scaledSum, _ int) T {
			return T(a.top + math.Log(a.sum))
		})
}

// plus rescales the smaller one. If both maxima are Inf or -Inf their difference is NaN.
func (a scaledSum) plus(b scaledSum) scaledSum {
	switch {
	// Infinities of one sign: their difference would be NaN.
	case b.top != b.top || a.top == b.top:
		return scaledSum{b.top, a.sum + b.sum}
	case b.top > a.top:
		a, b = b, a
	}
	return scaledSum{a.top, a.sum + b.sum*math.Exp(b.top-a.top)}
}

// plusRow adds a block of elements.
func (a scaledSum) plusRow(x []float32) scaledSum {
	top := float64(kernel.ReduceMax(x))
	if math.IsInf(top, 0) || top != top {
		return a.plus(scaledSum{top, float64(len(x))}) // their number does not matter
	}
	var buf [block.Len]float32
	t := buf[:len(x)]
	kernel.SubScalar(t, x, float32(top))
	kernel.Exp(t, t)
	return a.plus(scaledSum{top, kernel.ReduceSum(t)})
}
