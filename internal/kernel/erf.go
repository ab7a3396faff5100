package kernel

// Erf writes the error function.
func Erf(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := erfBulk(dst, x)
	each(dst[n:], x[n:], erfGo)
}

const erfAbove = 7 // coefficients above the line

// erfTable holds P and Q of erf(x) = x·P(x²)/Q(x²) in the layout of tanhTable. Near minimax on |x| <= 3.93; relative
// error 2^-29.
var erfTable = [...]float64{
	1.1283791691728353, 0.18514956027154605, 0.05425483466458999, 0.0038403508203586002,
	0.0003771623003428199, 4.619871349067125e-06, -1.2857128916720528e-08,
	1, 0.4974179327021452, 0.11388758774982095, 0.015434936418230688,
	0.001302414285079726, 6.249911090884253e-05,
}

func erfGo(x float32) float32 {
	return float32(oddRatio(bound(float64(x), -erfBound, erfBound), erfTable[:], erfAbove))
}
