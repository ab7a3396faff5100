package kernel

import "math"

// RoundLanes is how many columns RoundSums takes.
const RoundLanes = 8

// A RoundGrid is what each of some columns is rounded to: codes from Low to High, whole numbers around zero, of which one
// stands for Scale; Inverse is 1/Scale.
type RoundGrid struct {
	Inverse, Scale, Low, High [RoundLanes]float32
}

// RoundSums are sums over the rows of each column, with weights: Cost of (x - code·Scale)², Moment of x·code and Square of
// code². Moment/Square is the scale for which Cost would be least with these codes.
type RoundSums struct {
	Cost, Moment, Square [RoundLanes]float32
}

// RoundCost rounds columns whose rows lie stride elements apart, and sums what that costs. Codes are x·Inverse rounded half to
// even. It needs numbers, not NaN.
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
			s.Moment[j] += float32(float32(w*code) * v)
			s.Square[j] += float32(float32(w*code) * code)
		}
	}
}
