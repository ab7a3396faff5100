package elementwise

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/kernel"
)

// kernels are the loops of package kernel for float32.
var kernels = map[string]binaryLoops[float32, float32]{
	"Add":   {kernel.Add, kernel.AddScalar, swapped(kernel.AddScalar)},
	"Sub":   {kernel.Sub, kernel.SubScalar, kernel.ScalarSub},
	"Mul":   {kernel.Mul, kernel.MulScalar, swapped(kernel.MulScalar)},
	"Div":   {kernel.Div, kernel.DivScalar, kernel.ScalarDiv},
	"Max":   {kernel.Max, kernel.MaxScalar, swapped(kernel.MaxScalar)},
	"PRelu": {vv: prelu[float32], vs: kernel.LeakyRelu},
	"Min":   {kernel.Min, kernel.MinScalar, swapped(kernel.MinScalar)},
}

// fastMish is x·tanh(softplus(x)), of a block.
func fastMish(dst, x []float32) {
	var buf [block.Len]float32
	t := buf[:len(x)]
	kernel.Softplus(t, x)
	kernel.Tanh(t, t)
	kernel.Mul(dst, x, t)
}

// scaledSilu is x·sigmoid(alpha·x), of a block.
func scaledSilu(alpha float32) func(dst, x []float32) {
	return func(dst, x []float32) {
		var buf [block.Len]float32
		kernel.Swish(dst, x, buf[:len(x)], alpha)
	}
}

// exponentialBelow maps negative x to scale·(e^(x/width)-1) and others to slope·x, of a block.
func exponentialBelow(scale, width, slope float32) func(dst, x []float32) {
	return func(dst, x []float32) {
		var buf [block.Len]float32
		t := buf[:len(x)]
		kernel.MinScalar(t, x, 0)
		kernel.DivScalar(t, t, 2*width)
		kernel.Tanh(t, t)
		kernel.Relu(dst, x)
		// e^v-1 is 2t/(1-t) for the t of v/2, which is accurate for small v
		for i, t := range t {
			dst[i] = slope*dst[i] + scale*(2*t/(1-t))
		}
	}
}

func floor(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(math.Floor(float64(v)))
	}
}

func ceil(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(math.Ceil(float64(v)))
	}
}

func round(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(math.RoundToEven(float64(v)))
	}
}

// swapped has the scalar as first operand, for commutative operators.
func swapped(f func(dst, x []float32, s float32)) func(dst []float32, s float32, x []float32) {
	return func(dst []float32, s float32, x []float32) { f(dst, x, s) }
}
