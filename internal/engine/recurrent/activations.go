package recurrent

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// functions are the activations of direction d, on rows in place. The attribute activations lists those of all directions; activation_alpha
// and activation_beta hold the parameters of those that have any, in order.
func (l *layer) functions(n *op.Node, d int) ([]func([]float32), error) {
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
	var out []func([]float32)
	for i, name := range names {
		fn, ok := activations[name]
		if !ok {
			return nil, fmt.Errorf("unknown activation %q", name)
		}
		a, b := fn.alpha, fn.beta
		if fn.numbers > 0 && len(alphas) > 0 {
			a, alphas = alphas[0], alphas[1:]
		}
		if fn.numbers > 1 && len(betas) > 0 {
			b, betas = betas[0], betas[1:]
		}
		if i/k == d {
			out = append(out, func(x []float32) { fn.apply(x, a, b) })
		}
	}
	return out, nil
}

// activations are the functions that ONNX defines for recurrent operators, with the defaults of their parameters.
var activations = map[string]struct {
	numbers     int
	alpha, beta float32
	apply       func(x []float32, alpha, beta float32)
}{
	"Relu":            {0, 0, 0, func(x []float32, _, _ float32) { kernel.Relu(x, x) }},
	"Tanh":            {0, 0, 0, func(x []float32, _, _ float32) { kernel.Tanh(x, x) }},
	"Sigmoid":         {0, 0, 0, func(x []float32, _, _ float32) { kernel.Sigmoid(x, x) }},
	"Affine":          {2, 1, 0, func(x []float32, a, b float32) { kernel.ScaleShift(x, x, a, b) }},
	"LeakyRelu":       {1, 0.01, 0, func(x []float32, a, _ float32) { kernel.LeakyRelu(x, x, a) }},
	"ThresholdedRelu": {1, 1, 0, thresholdedRelu},
	"ScaledTanh":      {2, 1, 1, scaledTanh},
	"HardSigmoid":     {2, 0.2, 0.5, func(x []float32, a, b float32) { kernel.HardSigmoid(x, x, a, b) }},
	"Elu":             {1, 1, 0, elu},
	"Softsign":        {0, 0, 0, softsign},
	"Softplus":        {0, 0, 0, softplus},
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
