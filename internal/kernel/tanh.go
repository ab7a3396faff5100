package kernel

// Tanh writes the hyperbolic tangent.
func Tanh(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := tanhBulk(dst, x)
	each(dst[n:], x[n:], tanhGo)
}

const tanhAbove = 5 // coefficients above the line

// tanhTable holds P and Q of tanh(x) = x·P(x²)/Q(x²), each with the least power first. The assembly reads it. Near
// minimax on |x| <= 9.1; relative error 2^-29.8.
var tanhTable = [...]float64{
	0.99999999895298, 0.1378148126099803, 0.004003559065870933, 3.148133282883299e-05,
	5.038338918870818e-08,
	1, 0.4711481357685575, 0.02771962081848587, 0.00041984541394716595,
	1.6091297602483839e-06, 7.298162151571499e-10,
}

func tanhGo(x float32) float32 {
	return float32(oddRatio(bound(float64(x), -tanhBound, tanhBound), tanhTable[:], tanhAbove))
}

// oddRatio is x·P(x²)/Q(x²) with P the first above coefficients of c and Q the others.
func oddRatio(x float64, c []float64, above int) float64 {
	z := x * x
	return x * horner(z, c[:above]) / horner(z, c[above:])
}
