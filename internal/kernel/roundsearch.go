package kernel

import "math"

// RoundLanes is the number of columns of RoundSearch.
const RoundLanes = 16

// A RoundSpace is the search space of RoundSearch: integers from Low to High, and ranges that are Fractions of a
// column's, each followed by Refits-1 scales that are optimal for the quantized values before. Zero points are Middle
// if Symmetric; else they map 0 to an integer.
type RoundSpace struct {
	Low, High, Middle float32
	Symmetric         bool
	Fractions         []float32
	Refits            int
}

// A RoundResult is the scales and zero points of the columns, and their ranges, extended to 0.
type RoundResult struct {
	Low, High, Least, Scale, Zero [RoundLanes]float32
}

// RoundSearch finds scales and zero points of columns, whose rows are stride elements apart, with the least Σ weight·(x
// - q·Scale)², where q is x/Scale rounded half to even, within the range of integers relative to Zero. All columns in
// one call, with RoundErrors: solving BERT's shape by GPTQ (8 × 128 tokens) takes 1.75 s of processor time, and 2.75
// with a kernel for the sums alone (Intel Xeon with AVX-512). Symmetric scales may be negative. The result of a column
// whose range is so small that scales are not normal is undefined. There is at least one row; x must not contain NaN.
func RoundSearch(r *RoundResult, x []float32, stride int, weight []float32, s RoundSpace) {
	if len(weight) == 0 || len(s.Fractions) == 0 || s.Refits < 1 {
		panic("kernel: RoundSearch of nothing")
	}
	within("x", len(x), (len(weight)-1)*stride+RoundLanes)
	if !roundSearchBulk(r, x, stride, weight, s) {
		roundSearchGo(r, x, stride, weight, s)
	}
}

// roundSearchGo is the twin.
func roundSearchGo(r *RoundResult, x []float32, stride int, weight []float32, s RoundSpace) {
	for j := range RoundLanes {
		// NaN: any first cost replaces it.
		c := roundColumn{x[j:], stride, weight, roundBest{Least: float32(math.NaN())}}
		for i := range weight {
			c.Low, c.High = min(c.Low, c.x[i*stride]), max(c.High, c.x[i*stride])
		}
		for _, f := range s.Fractions {
			scale, zero := s.over(float32(c.Low*f), float32(c.High*f))
			c.refit(scale, zero, s)
		}
		r.Low[j], r.High[j], r.Least[j], r.Scale[j], r.Zero[j] = c.Low, c.High, c.Least, c.Scale, c.Zero
	}
}

// A roundBest is one column of RoundResult.
type roundBest struct{ Low, High, Least, Scale, Zero float32 }

// A roundColumn is one column during the search.
type roundColumn struct {
	x      []float32
	stride int
	weight []float32
	roundBest
}

// over is the scale and zero point for a range.
func (s RoundSpace) over(low, high float32) (scale, zero float32) {
	if !s.Symmetric {
		scale = (high - low) / (s.High - s.Low)
		zero = s.Low + float32(math.RoundToEven(float64(-low/scale)))
		return scale, min(max(zero, s.Low), s.High)
	}
	if lowest := s.Low - s.Middle; -low >= high {
		return low / lowest, s.Middle
	}
	return high / s.largest(), s.Middle
}

// largest is the symmetric quantized value of largest magnitude, without zero point, positive if there is a choice.
func (s RoundSpace) largest() float32 {
	if down, up := s.Low-s.Middle, s.High-s.Middle; -down <= up {
		return up
	}
	return s.Low - s.Middle
}

// refit keeps the scales that are better than those before, and continues with the optimal scales for their quantized
// values.
func (c *roundColumn) refit(scale, zero float32, s RoundSpace) {
	inverse := 1 / scale
	for range s.Refits {
		cost, dot, square := c.sums(inverse, scale, s.Low-zero, s.High-zero)
		if !(cost >= c.Least) {
			c.Least, c.Scale, c.Zero = cost, scale, zero
		}
		// Least squares for the quantized values, which then may be other ones for this scale.
		if better := dot / square; normal(better) {
			scale, inverse = better, 1/better
		}
	}
}

// normal reports whether a scale is a normal, finite, non-zero float32.
func normal(scale float32) bool {
	m := math.Abs(float64(scale))
	return m >= 0x1p-126 && m <= 0x1p126
}

// sums are those over the rows: the weighted squared errors, and the products of quantized values with x and with
// themselves.
func (c *roundColumn) sums(inverse, scale, low, high float32) (cost, dot, square float32) {
	for i, w := range c.weight {
		v := c.x[i*c.stride]
		q := min(max(float32(math.RoundToEven(float64(float32(v*inverse)))), low), high)
		d := v - float32(q*scale)
		cost += float32(float32(d*d) * w)
		dot += float32(float32(w*q) * v)
		square += float32(float32(w*q) * q)
	}
	return cost, dot, square
}

// RoundErrors rounds x/scale to the nearest integers, half to even, within c, and stores in errors what they differ by
// from w, another row of the same columns: w - (q-zero)·scale.
func RoundErrors(dst []byte, errors, x, w, scale []float32, zero []int32, c IntRange) {
	c.check()
	n := len(dst)
	for _, row := range []struct {
		name string
		n    int
	}{{"errors", len(errors)}, {"x", len(x)}, {"w", len(w)}, {"scale", len(scale)}, {"zero", len(zero)}} {
		within(row.name, row.n, n)
	}
	done := roundErrorsBulk(dst, errors, x, w, scale, zero, c)
	roundErrorsGo(dst[done:], errors[done:], x[done:], w[done:], scale[done:], zero[done:], c)
}

// roundErrorsGo is the twin.
func roundErrorsGo(dst []byte, errors, x, w, scale []float32, zero []int32, c IntRange) {
	for j := range dst {
		inverse := 1 / scale[j]
		q := float32(math.RoundToEven(float64(float32(x[j] * inverse))))
		q = min(max(q, float32(c.Lo-zero[j])), float32(c.Hi-zero[j]))
		dst[j] = byte(int32(q) + zero[j])
		errors[j] = w[j] - float32(q*scale[j])
	}
}
