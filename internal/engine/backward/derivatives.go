package backward

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// derivatives is the list, in the order of y = f(x) and of those that follow from x alone.
var derivatives = []derivative{
	{typ: "Celu", one: above(0, func(n *op.Node) func(float64) float64 {
		alpha := float64(n.Float("alpha", 1))
		return func(y float64) float64 { return y/alpha + 1 }
	})},
	{typ: "Elu", one: above(0, func(n *op.Node) func(float64) float64 {
		alpha := float64(n.Float("alpha", 1))
		return func(y float64) float64 { return y + alpha }
	})},
	{typ: "HardSigmoid", one: func(n *op.Node) func(float64) float64 {
		alpha := float64(n.Float("alpha", 0.2))
		return func(y float64) float64 { return where(0 < y && y < 1, alpha, 0) }
	}},
	{typ: "LeakyRelu", one: above(0, func(n *op.Node) func(float64) float64 {
		alpha := float64(n.Float("alpha", 0.01))
		return func(float64) float64 { return alpha }
	})},
	{typ: "Selu", one: selu},
	{typ: "Sigmoid", block: constantOf(sigmoids), one: constantOf(func(y float64) float64 { return y * (1 - y) })},
	// The derivative is the logistic function 1-exp(-y); y, and so the difference, is tiny where x is negative.
	{typ: "Softplus", one: constantOf(func(y float64) float64 { return -math.Expm1(-y) })},
	{typ: "Softsign", one: constantOf(func(y float64) float64 { return (1 - math.Abs(y)) * (1 - math.Abs(y)) })},
	{typ: "Tan", one: constantOf(func(y float64) float64 { return 1 + y*y })},
	{typ: "Tanh", block: constantOf(tanhs), one: constantOf(func(y float64) float64 { return 1 - y*y })},
	{typ: "ThresholdedRelu", one: constantOf(func(y float64) float64 { return where(y != 0, 1, 0) })},

	{typ: "Acos", one: constantOf(func(x float64) float64 { return -1 / math.Sqrt(1-x*x) })},
	{typ: "Acosh", one: constantOf(func(x float64) float64 { return 1 / math.Sqrt(x*x-1) })},
	{typ: "Asin", one: constantOf(func(x float64) float64 { return 1 / math.Sqrt(1-x*x) })},
	{typ: "Asinh", one: constantOf(func(x float64) float64 { return 1 / math.Sqrt(x*x+1) })},
	{typ: "Atan", one: constantOf(func(x float64) float64 { return 1 / (1 + x*x) })},
	{typ: "Atanh", one: constantOf(func(x float64) float64 { return 1 / (1 - x*x) })},
	{typ: "Erf", one: constantOf(func(x float64) float64 { return 2 / math.SqrtPi * math.Exp(-x*x) })},
	{typ: "Gelu", block: constantOf(gelus),
		one: constantOf(func(x float64) float64 { return normal(x) + x*density(x) })},
	{typ: "GeluTanh", block: constantOf(geluTanhs), one: constantOf(geluTanh)},
	{typ: "HardSwish", block: constantOf(hardSwishes), one: constantOf(hardSwish)},
	{typ: "Mish", block: constantOf(mishes), one: constantOf(mish)},
	{typ: "Shrink", one: func(n *op.Node) func(float64) float64 {
		lambd := float64(n.Float("lambd", 0.5))
		return func(x float64) float64 { return where(math.Abs(x) > lambd, 1, 0) }
	}},
	{typ: "Swish", block: swishes, one: swish},
}

func constantOf[T any](f T) func(*op.Node) T { return func(*op.Node) T { return f } }

func where(is bool, yes, no float64) float64 {
	if is {
		return yes
	}
	return no
}

// above is 1 for elements greater than zero, and below for others.
func above(zero float64, below func(*op.Node) func(float64) float64) func(*op.Node) func(float64) float64 {
	return func(n *op.Node) func(float64) float64 {
		f := below(n)
		return func(v float64) float64 {
			if v > zero {
				return 1
			}
			return f(v)
		}
	}
}

func selu(n *op.Node) func(float64) float64 {
	alpha, gamma := float64(n.Float("alpha", 1.67326319217681884765625)),
		float64(n.Float("gamma", 1.05070102214813232421875))
	return func(y float64) float64 { return where(y > 0, gamma, y+alpha*gamma) }
}

func sigmoids(d, y, _ []float32) {
	kernel.ScalarSub(d, 1, y)
	kernel.Mul(d, d, y)
}

func tanhs(d, y, _ []float32) {
	kernel.Mul(d, y, y)
	kernel.ScalarSub(d, 1, d)
}

// normal is the cumulative normal distribution, density its derivative.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

const perSqrt2Pi = 1 / (math.Sqrt2 * math.SqrtPi)

func density(x float64) float64 { return perSqrt2Pi * math.Exp(-x*x/2) }

func gelus(d, x, e []float32) {
	kernel.MulScalar(d, x, 1/math.Sqrt2)
	kernel.Erf(d, d)
	kernel.ScaleShift(d, d, 0.5, 0.5)
	kernel.Mul(e, x, x)
	kernel.MulScalar(e, e, -0.5)
	kernel.Exp(e, e)
	kernel.Mul(e, e, x)
	kernel.Axpy(d, perSqrt2Pi, e)
}

// Gelu by tanh is x/2·(1+tanh(linear·(x+cubic·x³))).
const linear, cubic = 2 * perSqrt2Pi, 0.044715

func geluTanh(x float64) float64 {
	t := math.Tanh(linear * (x + cubic*x*x*x))
	return (1+t)/2 + x/2*(1-t*t)*linear*(1+3*cubic*x*x)
}

// geluTanhs: with t the hyperbolic tangent and s = linear·(1+3·cubic·x²), d is (1+t)·(1+x·s·(1-t))/2.
func geluTanhs(d, x, t []float32) {
	kernel.Mul(d, x, x)
	kernel.ScaleShift(t, d, linear*cubic, linear)
	kernel.Mul(t, t, x)
	kernel.Tanh(t, t)
	kernel.ScaleShift(d, d, 3*linear*cubic, linear)
	kernel.Mul(d, d, x)
	for i, v := range t {
		d[i] = (1 + v) * (1 + d[i]*(1-v)) / 2
	}
}

func hardSwish(x float64) float64 {
	switch {
	case x <= -3:
		return 0
	case x >= 3:
		return 1
	}
	return x/3 + 0.5
}

// hardSwishes: d is h + x/6 where h, HardSigmoid of x, is between 0 and 1, and h elsewhere. There are no branches,
// since signs of activations are mispredicted: the bits of h are between those of 0 and 1.
func hardSwishes(d, x, _ []float32) {
	const one = 0x3f800000
	kernel.HardSigmoid(d, x, 1./6, 0.5)
	for i, h := range d {
		v := int32(math.Float32bits(h))
		d[i] = h + math.Float32frombits(math.Float32bits(x[i]*(1./6))&uint32((-v&(v-one))>>31))
	}
}

// mish is that of x·tanh(softplus(x)).
func mish(x float64) float64 {
	soft := max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	t := math.Tanh(soft)
	return t + x*(1-t*t)/(1+math.Exp(-x))
}

func mishes(d, x, s []float32) {
	kernel.Softplus(d, x)
	kernel.Tanh(d, d)
	kernel.Sigmoid(s, x)
	for i, t := range d {
		d[i] = t + x[i]*s[i]*(1-t)*(1+t)
	}
}

func swish(n *op.Node) func(float64) float64 {
	alpha := float64(n.Float("alpha", 1))
	return func(x float64) float64 {
		s := 1 / (1 + math.Exp(-alpha*x))
		return s * (1 + alpha*x*(1-s))
	}
}

func swishes(n *op.Node) func(d, x, s []float32) {
	alpha := n.Float("alpha", 1)
	return func(d, x, s []float32) {
		kernel.MulScalar(d, x, alpha)
		kernel.Sigmoid(s, d)
		for i, v := range s {
			d[i] = v * (1 + d[i]*(1-v))
		}
	}
}
