package elementwise

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// An activation is a function with attributes.
type activation struct {
	name  string
	since int64
	exact func(n *op.Node) func(float64) float64
	fast  func(n *op.Node) func(dst, x []float32) // may be missing
}

var activations = []activation{
	{"Celu", 12, celu, fastCelu},
	{"Elu", 6, elu, fastElu},
	{"Gelu", 20, gelu, fastGelu},
	{"HardSigmoid", 6, hardSigmoid, fastHardSigmoid},
	{"LeakyRelu", 6, leakyRelu, fastLeakyRelu},
	{"Selu", 6, selu, fastSelu},
	{"Swish", 24, swish(1), fastSwish(1)},
	{"ThresholdedRelu", 10, thresholdedRelu, nil},
}

func activationOps() []op.Op {
	var ops []op.Op
	for _, a := range activations {
		row := unary("", a.name, a.since, block.Floats, a.run)
		if a.name == "Gelu" {
			row.Shape = geluShape
		}
		ops = append(ops, row)
	}
	return ops
}

func (a activation) run(c *op.Call) error { return activate(c, c.In[0], a.exact, a.fast) }

func activate(c *op.Call, x *ir.Array, exact func(*op.Node) func(float64) float64,
	fast func(*op.Node) func(dst, x []float32)) error {
	const grain = block.Grain / heavier
	f := exact(c.Node)
	if x.DType == ir.Double {
		return transform(c, x, grain, mapped(f))
	}
	if fast != nil {
		return transform(c, x, grain, fast(c.Node))
	}
	return transform(c, x, grain, mapped(single(f)))
}

func attribute(n *op.Node, name string, def float32) float64 { return float64(n.Float(name, def)) }

func celu(n *op.Node) func(float64) float64 {
	alpha := attribute(n, "alpha", 1)
	return func(x float64) float64 { return max(0, x) + min(0, alpha*math.Expm1(x/alpha)) }
}

func fastCelu(n *op.Node) func(dst, x []float32) {
	alpha := n.Float("alpha", 1)
	return exponentialBelow(alpha, alpha, 1)
}

func elu(n *op.Node) func(float64) float64 {
	alpha := attribute(n, "alpha", 1)
	return func(x float64) float64 {
		if x < 0 {
			return alpha * math.Expm1(x)
		}
		return x
	}
}

func fastElu(n *op.Node) func(dst, x []float32) { return exponentialBelow(n.Float("alpha", 1), 1, 1) }

// Defaults of Selu's attributes.
const (
	seluAlpha = 1.67326319217681884765625
	seluGamma = 1.05070102214813232421875
)

func fastSelu(n *op.Node) func(dst, x []float32) {
	gamma := n.Float("gamma", seluGamma)
	return exponentialBelow(gamma*n.Float("alpha", seluAlpha), 1, gamma)
}

func selu(n *op.Node) func(float64) float64 {
	alpha, gamma := attribute(n, "alpha", seluAlpha), attribute(n, "gamma", seluGamma)
	return func(x float64) float64 {
		if x <= 0 {
			return gamma * alpha * math.Expm1(x)
		}
		return gamma * x
	}
}

func hardSigmoid(n *op.Node) func(float64) float64 {
	alpha, beta := attribute(n, "alpha", 0.2), attribute(n, "beta", 0.5)
	return func(x float64) float64 { return max(0, min(1, alpha*x+beta)) }
}

func fastHardSigmoid(n *op.Node) func(dst, x []float32) {
	alpha, beta := n.Float("alpha", 0.2), n.Float("beta", 0.5)
	return func(dst, x []float32) { kernel.HardSigmoid(dst, x, alpha, beta) }
}

func leakyRelu(n *op.Node) func(float64) float64 {
	alpha := attribute(n, "alpha", 0.01)
	return func(x float64) float64 {
		if x < 0 {
			return alpha * x
		}
		return x
	}
}

func fastLeakyRelu(n *op.Node) func(dst, x []float32) {
	alpha := n.Float("alpha", 0.01)
	return func(dst, x []float32) { kernel.LeakyRelu(dst, x, alpha) }
}

func thresholdedRelu(n *op.Node) func(float64) float64 {
	alpha := attribute(n, "alpha", 1)
	return func(x float64) float64 {
		if x > alpha {
			return x
		}
		return 0
	}
}

// swish is x·sigmoid(alpha·x), with def as the default of alpha.
func swish(def float32) func(n *op.Node) func(float64) float64 {
	return func(n *op.Node) func(float64) float64 {
		alpha := attribute(n, "alpha", def)
		return func(x float64) float64 { return gated(x, sigmoid(alpha*x)) }
	}
}

func fastSwish(def float32) func(n *op.Node) func(dst, x []float32) {
	return func(n *op.Node) func(dst, x []float32) {
		if alpha := n.Float("alpha", def); alpha != 1 {
			return scaledSilu(alpha)
		}
		return kernel.Silu
	}
}

func geluShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if a := n.Text("approximate", "none"); a != "none" && a != "tanh" {
		return nil, fmt.Errorf("attribute approximate is %q, want none or tanh", a)
	}
	return unaryShape(block.Floats, ir.Undefined)(n, in)
}

func gelu(n *op.Node) func(float64) float64 {
	if n.Text("approximate", "none") == "tanh" {
		return geluTanh
	}
	return geluErf
}

func fastGelu(n *op.Node) func(dst, x []float32) {
	if n.Text("approximate", "none") == "tanh" {
		return kernel.GeluTanh
	}
	return kernel.Gelu
}

// geluErf is x/2·(1+erf(x/√2)), by erfc, which is accurate for negative x.
func geluErf(x float64) float64 {
	// The product below is -Inf·0, NaN.
	if math.IsInf(x, -1) {
		return math.Copysign(0, -1)
	}
	return x / 2 * math.Erfc(-x/math.Sqrt2)
}

// geluTanh is x/2·(1+tanh(y)) with y = √(2/π)·(x+0.044715·x³), by the logistic function of 2y, which is accurate for
// negative x.
func geluTanh(x float64) float64 {
	return gated(x, sigmoid(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// gated is x·gate, and for a gate that is closed the limit, ±0, also of infinite x, whose product is NaN: like
// kernel.Silu and kernel.GeluTanh, while ONNX Runtime has NaN.
func gated(x, gate float64) float64 {
	if gate == 0 {
		return math.Copysign(0, x)
	}
	return x * gate
}
