package kernel

import "math"

// Log writes the natural logarithm: -Inf for zeros, NaN below.
func Log(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := logBulk(dst, x)
	each(dst[n:], x[n:], logGo)
}

// Softplus writes ln(1+e^x).
func Softplus(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := softplusBulk(dst, x)
	each(dst[n:], x[n:], softplusGo)
}

// atanhTable is the minimax polynomial of atanh(s)/s in s² for |s| <= 1/3, least power first, error 2^-33, times two,
// as logarithms need it. The assembly reads it.
var atanhTable = [...]float64{
	2 * 0.9999999998994517, 2 * 0.3333333974154256, 2 * 0.19999339133418156,
	2 * 0.14310520212726058, 2 * 0.10694988458903514, 2 * 0.12212426748054275,
}

const (
	sqrtHalfBits = 0x3fe6a09e667f3bcd // of √½, where the mantissa wraps from √2
	logBias      = 1024               // keeps exponents positive
)

// log64 is ln x for positive finite x: k·ln(2) + ln(m) with m between √½ and √2.
func log64(x float64) float64 {
	b := math.Float64bits(x)
	// Less the bits of √½, the exponent field changes at √½·2^k instead of at powers of two.
	k := (b - sqrtHalfBits + logBias<<52) >> 52
	m := math.Float64frombits(b - k<<52 + logBias<<52)
	return math.FMA(float64(int64(k)-logBias), ln2, twiceAtanh((m-1)/(m+1)))
}

// twiceAtanh is ln((1+s)/(1-s)) for |s| <= 1/3. Conversions around products prevent fused multiply-adds.
func twiceAtanh(s float64) float64 {
	return float64(s * horner(float64(s*s), atanhTable[:]))
}

func logGo(x float32) float32 {
	switch {
	case !(x <= math.MaxFloat32):
		return x // Inf or NaN
	case x < 0:
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	}
	return float32(log64(float64(x)))
}

// softplusGo is max(x, 0) + ln(1+t), t = e^-|x|.
func softplusGo(x float32) float32 {
	v := float64(x)
	t := exp64(-atMost(math.Abs(v), sigmoidBound))
	return float32(atLeast(v, 0) + twiceAtanh(t/(2+t)))
}
