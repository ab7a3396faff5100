package kernel

import "math"

// ShrinkBlock is a step of half-quadratic quantization (Badri and Shaji 2023) for each column of x, rows of BlockCols:
// zero is reduced by the mean of the errors of the values rounded to x·inverse + zero, clamped to lo and hi, minus the
// outliers that the proximal operator of |e|^½ keeps of them, |e| - lambda/√|e| and at least 0. Errors are in steps.
func ShrinkBlock(zero *[BlockCols]float32, x []float32, inverse *[BlockCols]float32, lo, hi, lambda float32) {
	checkRows(len(x), BlockCols)
	if len(x) == 0 {
		return
	}
	fraction := 1 / float32(len(x)/BlockCols)
	if !shrinkBlockBulk(zero, x, inverse, lo, hi, lambda, fraction) {
		shrinkBlockGo(zero, x, inverse, lo, hi, lambda, fraction)
	}
}

func shrinkBlockGo(zero *[BlockCols]float32, x []float32, inverse *[BlockCols]float32, lo, hi, lambda,
	fraction float32) {
	var sum [BlockCols]float32
	for ; len(x) > 0; x = x[BlockCols:] {
		for j, v := range x[:BlockCols] {
			v = float32(v * inverse[j])
			u := v + zero[j]
			q := nearest(u, lo, hi)
			e := u - q
			a := float32(math.Abs(float64(e)))
			outlier := max(a-lambda/float32(math.Sqrt(float64(a))), 0)
			sum[j] += (q - v) + float32(math.Copysign(float64(outlier), float64(e)))
		}
	}
	for j := range zero {
		zero[j] = float32(sum[j] * fraction)
	}
}
