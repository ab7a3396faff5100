package reduce

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A scaled is sum·e^top: a sum of exponentials that does not overflow.
type scaled struct{ top, sum float64 }

func logSumExp[T floating]() fold[T, scaled] {
	zero := scaled{top: math.Inf(-1)}
	return each(zero, func(a scaled, v T) scaled { return a.plus(scaled{float64(v), 1}) }, scaled.plus, func(a scaled, _ int) T {
		return T(a.top + math.Log(a.sum))
	})
}

// plus rescales the smaller one. If both maxima are Inf or -Inf their difference is NaN.
func (a scaled) plus(b scaled) scaled {
	switch {
	// Infinities of one sign: their difference would be NaN.
	case b.top != b.top || a.top == b.top:
		return scaled{b.top, a.sum + b.sum}
	case b.top > a.top:
		a, b = b, a
	}
	return scaled{a.top, a.sum + b.sum*math.Exp(b.top-a.top)}
}

// plusRow adds a block of elements.
func (a scaled) plusRow(x []float32) scaled {
	top := float64(kernel.ReduceMax(x))
	if math.IsInf(top, 0) || top != top {
		return a.plus(scaled{top, float64(len(x))}) // their number does not matter
	}
	var buf [block.Len]float32
	t := buf[:len(x)]
	kernel.SubScalar(t, x, float32(top))
	kernel.Exp(t, t)
	return a.plus(scaled{top, kernel.ReduceSum(t)})
}
