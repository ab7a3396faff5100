package kernel

import "math"

// The functions of this file and of logarithm.go, erf.go, tanh.go and sincos.go are computed in float64, with fused
// multiply-adds, and rounded once: within 0.6 ulp of the true value over all of float32, including subnormal results.
// math.FMA is exact everywhere, so that twin and assembly agree. dst may be x, but must not overlap it otherwise.

// Exp writes e^x.
func Exp(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := expBulk(dst, x)
	each(dst[n:], x[n:], expGo)
}

// Sigmoid writes 1/(1+e^-x).
func Sigmoid(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := sigmoidBulk(dst, x)
	each(dst[n:], x[n:], sigmoidGo)
}

// GeluTanh writes the approximation of Gelu by tanh, x/2·(1+tanh(√(2/π)·(x+0.044715·x³))), for
// -Inf the limit, -0.
func GeluTanh(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := geluTanhBulk(dst, x)
	each(dst[n:], x[n:], geluTanhGo)
}

const (
	log2e = math.Log2E
	ln2   = math.Ln2
	// integerShift is 3·2^51: its sum with a float64 is rounded to an integer, half to even,
	// which the low bits hold.
	integerShift = 3 << 51

	expLeast     = -104 // e^x is below half of the least subnormal float32
	expGreatest  = 89   // e^x is above the greatest float32
	sigmoidBound = 200  // 1/(1+e^x) is 0, and still is when multiplied by x
	geluBound    = 14.5 // Gelu and GeluTanh of -14.5 are -0
	tanhBound    = 9.1  // tanh is 1
	erfBound     = 3.93 // erf is 1
)

// boundTable holds the arguments beyond which a function has its limit after rounding to float32. The assembly reads it
// in this order.
//
//lint:ignore U1000 Go code does not use it
var boundTable = [...]float64{
	expLeast, expGreatest, -sigmoidBound, sigmoidBound, -geluBound, geluBound,
	-tanhBound, tanhBound, -erfBound, erfBound,
}

// expTable: the assembly reads it in this order. The series is near the minimax polynomial of e^r for |r| <= ln(2)/2
// that is exact at 0, as the maximum element of LogSoftmax requires, least power first; relative error 2^-28.9.
var expTable = [...]float64{
	log2e, integerShift, ln2,
	1, 1.0000000321829887, 0.49999994204462334, 0.16666431172816434,
	0.04166800285056782, 0.008374163169682232, 0.0013843629086876482,
}

const expSeries = 3 // start of the series in expTable

// exp64 is e^x for |x| <= 700, or NaN: 2^k·e^r with x = k·ln(2)+r.
func exp64(x float64) float64 {
	shifted := math.FMA(x, log2e, integerShift)
	r := math.FMA(integerShift-shifted, ln2, x)
	// Two powers a step would be 3 % faster here, and need more registers than other functions have.
	p := horner(r, expTable[expSeries:])
	// The low bits of shifted are k, which is added to the exponent.
	return math.Float64frombits(math.Float64bits(p) + math.Float64bits(shifted)<<52)
}

// horner is the polynomial with these coefficients, least power first.
func horner(x float64, c []float64) float64 {
	last := len(c) - 1
	p := c[last]
	for i := last - 1; i >= 0; i-- {
		p = math.FMA(p, x, c[i])
	}
	return p
}

func bound(x, lo, hi float64) float64 { return atMost(atLeast(x, lo), hi) }

// atLeast and atMost compare so that NaN is kept, like MAXPD and MINPD.
func atLeast(x, lo float64) float64 {
	if lo > x {
		return lo
	}
	return x
}

func atMost(x, hi float64) float64 {
	if hi < x {
		return hi
	}
	return x
}

func expGo(x float32) float32 {
	return float32(exp64(bound(float64(x), expLeast, expGreatest)))
}

func sigmoidGo(x float32) float32 {
	return float32(1 / (1 + exp64(-bound(float64(x), -sigmoidBound, sigmoidBound))))
}

// geluTable: x/2·(1+tanh(u/2)) is x/(1+e^-u) with u = geluTable[0]·x + geluTable[1]·x³.
var geluTable = [...]float64{2 * sqrt2OverPi, 2 * sqrt2OverPi * 0.044715}

const sqrt2OverPi = 0.797884560802865355879892119868763737

func geluTanhGo(x float32) float32 {
	v := atLeast(float64(x), -geluBound)
	t := atMost(v, geluBound)
	u := float64(math.FMA(float64(t*t), geluTable[1], geluTable[0]) * t)
	return float32(v / (1 + exp64(-u)))
}
