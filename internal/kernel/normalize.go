package kernel

import "math"

// LayerNorm writes (x-mean)/√(variance+eps)·gamma+beta of one row, which must not be empty, and returns the further
// outputs of ONNX LayerNormalization. A nil beta means zeros. It is computed in float64 and rounded once. dst may be x,
// but must not overlap anything otherwise.
func LayerNorm(dst, x, gamma, beta []float32, eps float32) (mean, invStdDev float32) {
	checkLen("dst", len(dst), len(x))
	checkLen("gamma", len(gamma), len(x))
	m, variance := MeanVariance(x)
	inv := 1 / math.Sqrt(variance+float64(eps))
	if beta == nil {
		scaleAbout(dst, x, gamma, m, inv)
		return float32(m), float32(inv)
	}
	checkLen("beta", len(beta), len(x))
	n := scaleShiftAboutBulk(dst, x, gamma, beta, m, inv)
	scaleShiftAboutGo(dst[n:], x[n:], gamma[n:], beta[n:], m, inv)
	return float32(m), float32(inv)
}

// RMSNorm writes x/√(mean of x²+eps)·gamma of one row, which must not be empty. It is computed in
// float64 and rounded once. dst may be x, but must not overlap anything otherwise.
func RMSNorm(dst, x, gamma []float32, eps float32) {
	checkLen("dst", len(dst), len(x))
	checkLen("gamma", len(gamma), len(x))
	if len(x) == 0 {
		panic("kernel: RMSNorm of an empty row")
	}
	square := ReduceSumSquare(x) / float64(len(x))
	scaleAbout(dst, x, gamma, 0, 1/math.Sqrt(square+float64(eps)))
}

// scaleAbout writes (x-center)·scale·gamma.
func scaleAbout(dst, x, gamma []float32, center, scale float64) {
	n := scaleAboutBulk(dst, x, gamma, center, scale)
	scaleAboutGo(dst[n:], x[n:], gamma[n:], center, scale)
}

func scaleAboutGo(dst, x, gamma []float32, center, scale float64) {
	dst, gamma = dst[:len(x)], gamma[:len(x)]
	for i, v := range x {
		dst[i] = float32((float64(v) - center) * scale * float64(gamma[i]))
	}
}

func scaleShiftAboutGo(dst, x, gamma, beta []float32, center, scale float64) {
	dst, gamma, beta = dst[:len(x)], gamma[:len(x)], beta[:len(x)]
	for i, v := range x {
		y := math.FMA((float64(v)-center)*scale, float64(gamma[i]), float64(beta[i]))
		dst[i] = float32(y)
	}
}
