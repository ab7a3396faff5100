package conv

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/kernel"
)

// activations are what a fused convolution may end with: for each the names and defaults of its
// parameters, as the operator of that name has them, and what it does to a row.
var activations = map[string]struct {
	defaults []float32
	apply    func(row, p []float32)
}{
	"Relu":        {nil, func(row, _ []float32) { kernel.Relu(row, row) }},
	"Sigmoid":     {nil, func(row, _ []float32) { kernel.Sigmoid(row, row) }},
	"Tanh":        {nil, func(row, _ []float32) { kernel.Tanh(row, row) }},
	"HardSwish":   {nil, func(row, _ []float32) { kernel.HardSwish(row, row) }},
	"Silu":        {nil, func(row, _ []float32) { kernel.Silu(row, row) }},
	"Gelu":        {nil, func(row, _ []float32) { kernel.Gelu(row, row) }},
	"LeakyRelu":   {[]float32{0.01}, func(row, p []float32) { kernel.LeakyRelu(row, row, p[0]) }},
	"HardSigmoid": {[]float32{0.2, 0.5}, func(row, p []float32) { kernel.HardSigmoid(row, row, p[0], p[1]) }},
	"Clip": {
		[]float32{-math.MaxFloat32, math.MaxFloat32},
		func(row, p []float32) { kernel.Clip(row, row, p[0], p[1]) },
	},
}

// activationOf reads the attributes of a fused node. Without one it is nil.
func activationOf(n *op.Node) (func(row []float32), error) {
	name := n.Text("activation", "")
	if name == "" {
		return nil, nil
	}
	a, known := activations[name]
	if !known {
		return nil, fmt.Errorf("activation %q is not known", name)
	}
	p := n.Floats("activation_params")
	switch len(p) {
	case 0:
		p = a.defaults
	case len(a.defaults):
	default:
		return nil, fmt.Errorf("activation %s has %d parameters, want %d", name, len(p), len(a.defaults))
	}
	return func(row []float32) { a.apply(row, p) }, nil
}
