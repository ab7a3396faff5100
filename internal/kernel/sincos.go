package kernel

import (
	"math"
	"math/bits"
)

// Sin writes the sine of x in radians, for any finite x; NaN for infinities.
func Sin(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := sinBulk(dst, x)
	each(dst[n:], x[n:], sinGo)
}

// Cos writes the cosine of x in radians, for any finite x; NaN for infinities.
func Cos(dst, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := cosBulk(dst, x)
	each(dst[n:], x[n:], cosGo)
}

const (
	twoOverPi  = 2 / math.Pi
	halfPi     = math.Pi / 2           // as float64, which is
	halfPiRest = 6.123233995736766e-17 // too small by this
	// quadrantLimit bounds arguments whose quadrant follows from the shift; their remainder has a relative error below
	// 2^-40.
	quadrantLimit = 1 << 32
)

// sincosTable: the assembly reads it in this order. The series are the minimax polynomials of
// sin(r)/r and cos(r) in r² for |r| <= π/4, least power first, relative errors 2^-37 and 2^-34.
var sincosTable = [...]float64{
	twoOverPi, integerShift, halfPi, halfPiRest,
	0.9999999999954469, -0.1666666663041738, 0.00833332868736004, -0.0001983917751993902,
	2.7171451269046716e-06,
	0.9999999999439008, -0.4999999957123459, 0.041666613201773034, -0.0013886528195937047,
	2.4372592047729936e-05,
}

const (
	sinSeries = 4
	cosSeries = 9
)

func sinGo(x float32) float32 {
	r, q := quadrant(x)
	return float32(sine(r, q))
}

func cosGo(x float32) float32 {
	r, q := quadrant(x)
	return float32(sine(r, q+1))
}

// quadrant splits x into q·π/2 + r with |r| <= π/4; only the low two bits of q count.
func quadrant(x float32) (r float64, q uint64) {
	v := float64(x)
	// In two steps below, after Payne and Hanek above.
	if math.Abs(v) >= quadrantLimit {
		return quadrantFar(x)
	}
	shifted := math.FMA(v, twoOverPi, integerShift)
	n := shifted - integerShift
	r = math.FMA(-n, halfPi, v) // exact: it cancels all but 53 bits
	return math.FMA(-n, halfPiRest, r), math.Float64bits(shifted)
}

// sine is sin(q·π/2 + r) for |r| <= π/4.
func sine(r float64, q uint64) float64 {
	z := float64(r * r)
	v := float64(r * horner(z, sincosTable[sinSeries:cosSeries]))
	if q&1 == 1 {
		v = horner(z, sincosTable[cosSeries:])
	}
	return math.Float64frombits(math.Float64bits(v) ^ q>>1<<63)
}

// quadrantFar is quadrant for |x| >= 2^26 (Payne and Hanek): x is an integer m times 2^e, so the digits of 2/π above
// 2^(2-e) give multiples of four quadrants, and the next 128 suffice.
func quadrantFar(x float32) (r float64, q uint64) {
	b := math.Float32bits(x)
	if b&magnitude >= f32Inf {
		return math.NaN(), 0
	}
	digits := [...]uint64{0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561}
	m, skip := uint64(b&0x7fffff|0x800000), b>>23&0xff-152
	w, off := skip/64, skip%64
	// The integer part of x·2/π beyond quadrants has been skipped, so that products may wrap around.
	high := digits[w]<<off | digits[w+1]>>(64-off)
	low := digits[w+1]<<off | digits[w+2]>>(64-off)
	carry, _ := bits.Mul64(low, m)
	turns := high*m + carry // in units of 2^-64 of a full turn
	q = (turns + 1<<61) >> 62
	r = float64(int64(turns-q<<62)) * (halfPi / (1 << 62))
	if b>>31 == 1 {
		return -r, -q
	}
	return r, q
}
