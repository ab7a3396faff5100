package kernel

import "math"

// Gelu writes x·Φ(x) with Φ the distribution function of the normal distribution, which is x/2·(1+erf(x/√2)); for -Inf
// the limit, -0. Like Silu it is computed in float32 with fused multiply-adds, within 5 ulp, also in its negative tail.
func Gelu(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := geluBulk(dst, x)
	each(dst[n:], x[n:], geluGo)
}

// millsTable holds bounds of the argument and a factor, then P and Q of Φ(-a)·e^(a²/2) = P(a)/Q(a), Mills' ratio up to
// a factor, each with the least power first. The assembly reads it. Near minimax on 0 <= a <= 14.5; relative error
// 2^-33.4 before coefficients are rounded, all of which are positive.
var millsTable = [...]float32{
	-geluBound, geluBound, -0.5,
	0.4999999999585859, 0.5073250366162474, 0.250385446963145, 0.07123032659041152,
	0.011625790308467006, 0.0008877396191857138,
	1, 1.812534626087372, 1.4469644106168962, 0.6566646851310081,
	0.18077881750503536, 0.02914134606900769, 0.002225236043695681,
}

const (
	millsAbove = 3 // start of P in millsTable
	millsBelow = millsAbove + 6
)

// geluGo uses Φ of the negative magnitude, for the precision of its tail. The error of the square, which the
// exponential would multiply, is in the remainder of its argument. The power of 2 is multiplied last, as in siluGo.
func geluGo(x float32) float32 {
	x = max32(x, -geluBound)
	a := min32(abs(x), geluBound)
	square := float32(a * a)
	r, k := reduce32(float32(square * -0.5))
	// The error of the rounded square.
	r = fma32(-0.5, fma32(a, a, -square), r)
	m := float32(horner32(r, siluTable[siluSeries:])*horner32(a, millsTable[millsAbove:millsBelow])) / horner32(a,
		millsTable[millsBelow:])
	if math.Signbit(float64(x)) {
		return scaled(float32(x*m), k)
	}
	return float32(x * float32(1-scaled(m, k)))
}

// min32 compares so that NaN is kept, like MINPS.
func min32(x, hi float32) float32 {
	if hi < x {
		return hi
	}
	return x
}
