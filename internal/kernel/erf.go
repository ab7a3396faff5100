package kernel

import "math"

// Erf writes the error function.
func Erf(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := erfBulk(dst, x)
	each(dst[n:], x[n:], erfGo)
}

// Gelu writes x·Φ(x) with Φ the distribution function of the normal distribution, which is
// x/2·(1+erf(x/√2)); for -Inf the limit, -0.
func Gelu(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := geluBulk(dst, x)
	each(dst[n:], x[n:], geluGo)
}

const (
	erfAbove   = 7 // coefficients above the line
	millsAbove = 6
)

// erfTable holds P and Q of erf(x) = x·P(x²)/Q(x²) in the layout of tanhTable. Near minimax on |x| <= 3.93; relative error 2^-29.
var erfTable = [...]float64{
	1.1283791691728353, 0.18514956027154605, 0.05425483466458999, 0.0038403508203586002,
	0.0003771623003428199, 4.619871349067125e-06, -1.2857128916720528e-08,
	1, 0.4974179327021452, 0.11388758774982095, 0.015434936418230688,
	0.001302414285079726, 6.249911090884253e-05,
}

// millsTable holds P and Q of Φ(-a)·e^(a²/2) = P(a)/Q(a), Mills' ratio up to a factor, each with the least power first. The assembly reads
// it. Near minimax on 0 <= a <= 14.5; relative error 2^-33.4.
var millsTable = [...]float64{
	0.4999999999585859, 0.5073250366162474, 0.250385446963145, 0.07123032659041152,
	0.011625790308467006, 0.0008877396191857138,
	1, 1.812534626087372, 1.4469644106168962, 0.6566646851310081,
	0.18077881750503536, 0.02914134606900769, 0.002225236043695681,
}

func erfGo(x float32) float32 {
	return float32(oddRatio(bound(float64(x), -erfBound, erfBound), erfTable[:], erfAbove))
}

// geluGo uses Φ of the negative magnitude, for the precision of its tail.
func geluGo(x float32) float32 {
	v := atLeast(float64(x), -geluBound)
	a := atMost(math.Abs(v), geluBound)
	phi := exp64(float64(a*a)*-0.5) * horner(a, millsTable[:millsAbove]) / horner(a, millsTable[millsAbove:])
	if !math.Signbit(v) {
		phi = 1 - phi
	}
	return float32(v * phi)
}
