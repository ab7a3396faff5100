package elementwise

import "github.com/mcompress/mcompress/kernel"

// singles are the loops of package kernel for float32.
var singles = map[string]rows[float32, float32]{
	"Add": {kernel.Add, kernel.AddScalar, swapped(kernel.AddScalar)},
	"Sub": {kernel.Sub, kernel.SubScalar, kernel.ScalarSub},
	"Mul": {kernel.Mul, kernel.MulScalar, swapped(kernel.MulScalar)},
	"Div": {kernel.Div, kernel.DivScalar, kernel.ScalarDiv},
	"Max": {kernel.Max, kernel.MaxScalar, swapped(kernel.MaxScalar)},
	"Min": {kernel.Min, kernel.MinScalar, swapped(kernel.MinScalar)},
}

// swapped takes the single number first, for operators that do not mind the order.
func swapped(f func(dst, x []float32, s float32)) func(dst []float32, s float32, x []float32) {
	return func(dst []float32, s float32, x []float32) { f(dst, x, s) }
}
