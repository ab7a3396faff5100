package kernel

import "math"

// RoundLanes is the number of columns of RoundSums.
const RoundLanes = 8

// A RoundGrid is the quantization parameters of each column: integers from Low to High, zero point 0, with Scale; Inverse is 1/Scale.
type RoundGrid struct {
	Inverse, Scale, Low, High [RoundLanes]float32
}

// RoundSums are weighted sums over the rows of each column: Cost of (x - q·Scale)², Dot of x·q and Square of q². Dot/Square is the
// scale of minimum Cost for these quantized values.
type RoundSums struct {
	Cost, Dot, Square [RoundLanes]float32
}

// RoundCost rounds columns whose rows are stride elements apart, and sums the squared errors. Quantized values are x·Inverse rounded half
// to even. x must not contain NaN.
func RoundCost(s *RoundSums, x []float32, stride int, weight []float32, g *RoundGrid) {
	if len(weight) == 0 {
		*s = RoundSums{}
		return
	}
	within("x", len(x), (len(weight)-1)*stride+RoundLanes)
	if !roundCostBulk(s, x, stride, weight, g) {
		roundCostGo(s, x, stride, weight, g)
	}
}

// roundCostGo is the twin.
func roundCostGo(s *RoundSums, x []float32, stride int, weight []float32, g *RoundGrid) {
	*s = RoundSums{}
	for i, w := range weight {
		for j, v := range x[i*stride:][:RoundLanes] {
			code := float32(math.RoundToEven(float64(float32(v * g.Inverse[j]))))
			code = min(max(code, g.Low[j]), g.High[j])
			d := v - float32(code*g.Scale[j])
			s.Cost[j] += float32(float32(d*d) * w)
			s.Dot[j] += float32(float32(w*code) * v)
			s.Square[j] += float32(float32(w*code) * code)
		}
	}
}
