package recurrent

import "math"

// The activations in float64, and their derivatives as functions of the value y. They are unambiguous unless the alpha
// of LeakyRelu or Elu is negative.

func relu(x, _, _ float64) float64 { return max(x, 0) }

func reluSlope(y, _, _ float64) float64 { return leakyReluSlope(y, 0, 0) }

func tanh(x, _, _ float64) float64 { return math.Tanh(x) }

func tanhSlope(y, _, _ float64) float64 { return 1 - y*y }

func sigmoid(x, _, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }

func sigmoidSlope(y, _, _ float64) float64 { return y * (1 - y) }

func affine(x, alpha, beta float64) float64 { return alpha*x + beta }

func affineSlope(_, alpha, _ float64) float64 { return alpha }

func leakyRelu(x, alpha, _ float64) float64 {
	if x < 0 {
		return alpha * x
	}
	return x
}

func leakyReluSlope(y, alpha, _ float64) float64 {
	if y > 0 {
		return 1
	}
	return alpha
}

func thresholdedReluValue(x, alpha, _ float64) float64 {
	if x <= alpha {
		return 0
	}
	return x
}

func thresholdedReluSlope(y, _, _ float64) float64 {
	if y != 0 {
		return 1
	}
	return 0
}

func scaledTanhValue(x, alpha, beta float64) float64 { return alpha * math.Tanh(beta*x) }

func scaledTanhSlope(y, alpha, beta float64) float64 {
	if alpha == 0 {
		return 0
	}
	return beta * (alpha - y*y/alpha)
}

func hardSigmoid(x, alpha, beta float64) float64 { return min(max(alpha*x+beta, 0), 1) }

func hardSigmoidSlope(y, alpha, _ float64) float64 {
	if y > 0 && y < 1 {
		return alpha
	}
	return 0
}

func eluValue(x, alpha, _ float64) float64 {
	if x < 0 {
		return alpha * math.Expm1(x)
	}
	return x
}

func eluSlope(y, alpha, _ float64) float64 {
	if y > 0 {
		return 1
	}
	return y + alpha
}

func softsignValue(x, _, _ float64) float64 { return x / (1 + math.Abs(x)) }

func softsignSlope(y, _, _ float64) float64 { return (1 - math.Abs(y)) * (1 - math.Abs(y)) }

func softplusValue(x, _, _ float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func softplusSlope(y, _, _ float64) float64 { return -math.Expm1(-y) }

// activate applies f to a row in place.
func activate[T number](f function, x []T) {
	if x, ok := any(x).([]float32); ok {
		f.run(x)
		return
	}
	for i, v := range x {
		x[i] = T(f.value(float64(v), float64(f.a), float64(f.b)))
	}
}

// gate limits a row of sums and applies function k.
func (g *gradient[T]) gate(k int, x []T) {
	if g.clip > 0 {
		for i, v := range x {
			x[i] = min(max(v, -g.clip), g.clip)
		}
	}
	activate(g.f[k], x)
}

// derive multiplies dx by the derivative of function k at the values y, which is zero where limits applied.
func (g *gradient[T]) derive(k int, dx, y []T, limited bool) {
	y = y[:len(dx)]
	switch f := g.f[k]; f.name {
	case "Sigmoid":
		for i, v := range y {
			dx[i] *= v * (1 - v)
		}
	case "Tanh":
		for i, v := range y {
			dx[i] *= 1 - v*v
		}
	default:
		for i, v := range y {
			dx[i] *= T(f.slope(float64(v), float64(f.a), float64(f.b)))
		}
	}
	// At the value that a bound gives, the sum was at or beyond the bound.
	if limited && g.clip > 0 {
		for i, v := range y {
			if v <= g.ends[k][0] || v >= g.ends[k][1] {
				dx[i] = 0
			}
		}
	}
}
