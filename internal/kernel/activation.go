package kernel

import "math"

// The functions of this file are exact, or rounded like float32 arithmetic. dst may be x, but must not overlap it
// otherwise.

// Abs writes |x|.
func Abs(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := absBulk(dst, x)
	each(dst[n:], x[n:], abs)
}

// Neg writes -x.
func Neg(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := negBulk(dst, x)
	each(dst[n:], x[n:], neg)
}

// Relu writes 0 for negative elements and the others unchanged, including -0 and NaN.
func Relu(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := reluBulk(dst, x)
	each(dst[n:], x[n:], relu)
}

// LeakyRelu writes alpha·x for negative elements and the others unchanged.
func LeakyRelu(dst, x []float32, alpha float32) {
	checkLen("dst", len(dst), len(x))
	n := leakyReluBulk(dst, x, alpha)
	leakyReluGo(dst[n:], x[n:], alpha)
}

// Clip writes x bounded by lo, then by hi: if lo > hi the result is hi, as in ONNX Clip. NaN propagates, and a NaN
// bound is ignored.
func Clip(dst, x []float32, lo, hi float32) {
	checkLen("dst", len(dst), len(x))
	n := clipBulk(dst, x, lo, hi)
	clipGo(dst[n:], x[n:], lo, hi)
}

// HardSigmoid writes alpha·x+beta bounded by 0 and 1.
func HardSigmoid(dst, x []float32, alpha, beta float32) {
	checkLen("dst", len(dst), len(x))
	n := hardSigmoidBulk(dst, x, alpha, beta)
	hardSigmoidGo(dst[n:], x[n:], alpha, beta)
}

// HardSwish writes x times HardSigmoid of x with alpha 1/6 and beta 1/2.
func HardSwish(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := hardSwishBulk(dst, x)
	each(dst[n:], x[n:], hardSwish)
}

// Sqrt writes the square root, correctly rounded.
func Sqrt(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := sqrtBulk(dst, x)
	each(dst[n:], x[n:], sqrt)
}

// Reciprocal writes 1/x, correctly rounded.
func Reciprocal(dst, x []float32) { ScalarDiv(dst, 1, x) }

// each is the plain Go twin of functions of one element.
func each(dst, x []float32, f func(float32) float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = f(v)
	}
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) & magnitude) }

func neg(x float32) float32 { return -x }

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// relu compares so that NaN and -0 are kept, like MAXPS.
func relu(x float32) float32 {
	if 0 > x {
		return 0
	}
	return x
}

// clip compares so that NaN is kept, like MAXPS and MINPS.
func clip(x, lo, hi float32) float32 {
	if lo > x {
		x = lo
	}
	if hi < x {
		x = hi
	}
	return x
}

func hardSigmoid(x, alpha, beta float32) float32 {
	return clip(float32(alpha*x)+beta, 0, 1)
}

func hardSwish(x float32) float32 {
	const sixth = 1.0 / 6
	return x * hardSigmoid(x, sixth, 0.5)
}

func leakyReluGo(dst, x []float32, alpha float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		if v < 0 {
			v *= alpha
		}
		dst[i] = v
	}
}

func clipGo(dst, x []float32, lo, hi float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = clip(v, lo, hi)
	}
}

func hardSigmoidGo(dst, x []float32, alpha, beta float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = hardSigmoid(v, alpha, beta)
	}
}
