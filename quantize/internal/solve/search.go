package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

const lanes = kernel.RoundLanes

// A search finds the scales, and zero points, of some columns with minimum weighted squared error, the sum of weight·(x-q)²: over
// clipping ranges from the full range of x down, each followed by the optimal scale for its quantized values.
type search struct {
	Spec
	x      []float32 // rows of wide
	weight []float32
	spec   kernel.RoundGrid
	zero   [lanes]int32

	least, scale [lanes]float32
	best         [lanes]int32
}

const (
	tries    = 12
	narrower = 0.04
	refits   = 2
)

// tiny is the range below which a scale is not a normal float32.
const tiny = 256 * 0x1p-126

// run computes scale and best.
func (s *search) run() {
	low, high := s.ranges()
	for j := range lanes {
		s.least[j] = float32(math.Inf(1))
	}
	var sums kernel.RoundSums
	for t := range tries {
		s.start(&low, &high, 1-narrower*float32(t))
		for range refits {
			kernel.RoundCost(&sums, s.x, wide, s.weight, &s.spec)
			s.take(&sums)
		}
	}
	for j := range lanes {
		if max(high[j], -low[j]) < tiny {
			s.scale[j], s.best[j] = 1, s.middle()
		}
	}
}

// ranges are those of the columns.
func (s *search) ranges() (low, high [lanes]float32) {
	for i := range s.weight {
		for j, v := range s.x[i*wide:][:lanes] {
			low[j], high[j] = min(low[j], v), max(high[j], v)
		}
	}
	return low, high
}

// start sets scales and zero points for a fraction of the ranges.
func (s *search) start(low, high *[lanes]float32, part float32) {
	for j := range lanes {
		scale, zero := float32(1), s.middle()
		if max(high[j], -low[j]) >= tiny {
			scale, zero = s.over(low[j]*part, high[j]*part)
		}
		s.zero[j] = zero
		s.spec.Scale[j], s.spec.Inverse[j] = scale, 1/scale
		s.spec.Low[j], s.spec.High[j] = float32(s.Low-zero), float32(s.High-zero)
	}
}

// take keeps the scales that are better than those before, and continues with the optimal scales for their quantized values.
func (s *search) take(sums *kernel.RoundSums) {
	for j := range lanes {
		if sums.Cost[j] < s.least[j] {
			s.least[j], s.scale[j], s.best[j] = sums.Cost[j], s.spec.Scale[j], s.zero[j]
		}
		if better := sums.Dot[j] / sums.Square[j]; normal(better) {
			s.spec.Scale[j], s.spec.Inverse[j] = better, 1/better
		}
	}
}

// normal reports whether a scale is a normal, finite, non-zero float32.
func normal(scale float32) bool {
	m := math.Abs(float64(scale))
	return m >= 0x1p-126 && m <= 0x1p126
}
