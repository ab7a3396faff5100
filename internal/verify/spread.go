package verify

import "math"

// A spread accumulates noise and signal of runs, for the standard error of their ratio.
type spread struct {
	runs, noise, signal, noise2, signal2, product float64
}

func (s *spread) add(noise, signal float64) {
	s.runs++
	s.noise += noise
	s.signal += signal
	s.noise2 += float64(noise * noise)
	s.signal2 += float64(signal * signal)
	s.product += float64(noise * signal)
}

// deviation is the standard error of the ratio of sums, noise/signal, relative to it (the ratio estimator of survey
// sampling).
func (s *spread) deviation() float64 {
	if s.runs < 2 || !(s.noise > 0) || !(s.signal > 0) {
		return 0
	}
	ratio := s.noise / s.signal
	// The sum of the squares of noise - ratio·signal, from sums alone.
	residuals := s.noise2 - float64(2*ratio*s.product) + float64(ratio*ratio*s.signal2)
	return math.Sqrt(max(0, residuals)*s.runs/(s.runs-1)) / s.noise
}
