// Package activation provides the elementwise functions that fused operators apply while a result is in the cache.
//
// It must not know operators, nodes or graphs.
package activation

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Of is the function of that name, an ONNX operator's, on a row in place; nil for an empty name. params are the
// operator's attributes: LeakyRelu and HardSigmoid [alpha, beta], Clip [min, max].
func Of(name string, params []float32) (func(row []float32), error) {
	a, b := at(params, 0), at(params, 1)
	switch name {
	case "":
		return nil, nil
	case "Relu":
		return func(x []float32) { kernel.Relu(x, x) }, nil
	case "LeakyRelu":
		return func(x []float32) { kernel.LeakyRelu(x, x, a) }, nil
	case "Clip":
		return func(x []float32) { kernel.Clip(x, x, a, b) }, nil
	case "Sigmoid":
		return func(x []float32) { kernel.Sigmoid(x, x) }, nil
	case "Tanh":
		return func(x []float32) { kernel.Tanh(x, x) }, nil
	case "Gelu":
		return func(x []float32) { kernel.Gelu(x, x) }, nil
	case "FastGelu":
		return func(x []float32) { kernel.GeluTanh(x, x) }, nil
	case "Silu":
		return func(x []float32) { kernel.Silu(x, x) }, nil
	case "HardSigmoid":
		return func(x []float32) { kernel.HardSigmoid(x, x, a, b) }, nil
	case "HardSwish":
		return func(x []float32) { kernel.HardSwish(x, x) }, nil
	}
	return nil, fmt.Errorf("unknown activation %q", name)
}

// Bounds are the bounds of kernel.Clip that equal the function of that name, infinite for an empty name; ok is false if
// there are none.
func Bounds(name string, params []float32) (lo, hi float32, ok bool) {
	inf := float32(math.Inf(1))
	switch name {
	case "":
		return -inf, inf, true
	case "Relu":
		return 0, inf, true
	case "Clip":
		return at(params, 0), at(params, 1), true
	}
	return -inf, inf, false
}

func at(params []float32, i int) float32 {
	if i < len(params) {
		return params[i]
	}
	return 0
}
