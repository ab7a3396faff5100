package recurrent

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// functions are the activations of direction d. The attribute activations lists those of all directions;
// activation_alpha and activation_beta hold the parameters of those that have any, in order.
func (l *layer) functions(n *op.Node, d int) ([]function, error) {
	names := n.Texts("activations")
	if len(names) == 0 {
		for range l.D {
			names = append(names, l.activations...)
		}
	}
	k := len(l.activations)
	if len(names) != k*l.D {
		return nil, fmt.Errorf("%d activations for %d directions of %d", len(names), l.D, k)
	}
	alphas, betas := n.Floats("activation_alpha"), n.Floats("activation_beta")
	var out []function
	for i, name := range names {
		row, ok := activations[name]
		if !ok {
			return nil, fmt.Errorf("unknown activation %q", name)
		}
		f := function{activation: row, name: name, a: row.alpha, b: row.beta}
		// The lists have entries for functions with parameters only, so they are consumed in order.
		if row.numbers > 0 && len(alphas) > 0 {
			f.a, alphas = alphas[0], alphas[1:]
		}
		if row.numbers > 1 && len(betas) > 0 {
			f.b, betas = betas[0], betas[1:]
		}
		if i/k == d {
			out = append(out, f)
		}
	}
	return out, nil
}

// A function is an activation with its parameters.
type function struct {
	activation
	name string
	a, b float32
}

// run applies f to a row in place.
func (f function) run(x []float32) { f.apply(x, f.a, f.b) }

// An activation is a function that ONNX defines for recurrent operators.
type activation struct {
	numbers     int     // of parameters
	alpha, beta float32 // their defaults
	apply       func(x []float32, alpha, beta float32)
	// value is the function, and slope its derivative at the value y, in float64: for gradients.
	value, slope func(x, alpha, beta float64) float64
}

var activations = map[string]activation{
	"Relu":    {0, 0, 0, func(x []float32, _, _ float32) { kernel.Relu(x, x) }, relu, reluSlope},
	"Tanh":    {0, 0, 0, func(x []float32, _, _ float32) { kernel.Tanh(x, x) }, tanh, tanhSlope},
	"Sigmoid": {0, 0, 0, func(x []float32, _, _ float32) { kernel.Sigmoid(x, x) }, sigmoid, sigmoidSlope},
	"Affine": {2, 1, 0, func(x []float32, a, b float32) { kernel.ScaleShift(x, x, a, b) }, affine,
		affineSlope},
	"LeakyRelu": {1, 0.01, 0, func(x []float32, a, _ float32) { kernel.LeakyRelu(x, x, a) }, leakyRelu,
		leakyReluSlope},
	"ThresholdedRelu": {1, 1, 0, thresholdedRelu, thresholdedReluValue, thresholdedReluSlope},
	"ScaledTanh":      {2, 1, 1, scaledTanh, scaledTanhValue, scaledTanhSlope},
	"HardSigmoid": {2, 0.2, 0.5, func(x []float32, a, b float32) { kernel.HardSigmoid(x, x, a, b) }, hardSigmoid,
		hardSigmoidSlope},
	"Elu":      {1, 1, 0, elu, eluValue, eluSlope},
	"Softsign": {0, 0, 0, softsign, softsignValue, softsignSlope},
	"Softplus": {0, 0, 0, softplus, softplusValue, softplusSlope},
}

func thresholdedRelu(x []float32, alpha, _ float32) {
	for i, v := range x {
		if v <= alpha {
			x[i] = 0
		}
	}
}

func scaledTanh(x []float32, alpha, beta float32) {
	kernel.MulScalar(x, x, beta)
	kernel.Tanh(x, x)
	kernel.MulScalar(x, x, alpha)
}

func elu(x []float32, alpha, _ float32) {
	for i, v := range x {
		if v < 0 {
			x[i] = alpha * float32(math.Expm1(float64(v)))
		}
	}
}

func softsign(x []float32, _, _ float32) {
	for i, v := range x {
		x[i] = v / (1 + float32(math.Abs(float64(v))))
	}
}

func softplus(x []float32, _, _ float32) {
	for i, v := range x {
		x[i] = float32(math.Max(float64(v), 0) + math.Log1p(math.Exp(-math.Abs(float64(v)))))
	}
}
