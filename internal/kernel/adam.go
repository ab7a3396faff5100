package kernel

import "math"

// An AdamStep has the constants of a step of Adam (Kingma & Ba 2015, algorithm 1; decoupled weight decay: Loshchilov &
// Hutter 2019, algorithm 2).
type AdamStep struct {
	Rest1, Rest2 float32 // 1 - β₁, 1 - β₂
	Beta2        float32
	Epsilon      float32
	Correction   float32 // 1/√(1-β₂ᵗ)
	Rate         float32 // -learning rate / (1-β₁ᵗ)
	Coupled      float32 // weight decay that is added to the gradient
	Shrink       float32 // factor of decoupled weight decay
}

// Apply updates weights w and the moments m and v by the gradient g, each operation rounded.
func (s *AdamStep) Apply(w, g, m, v []float32) {
	checkLen("g", len(g), len(w))
	checkLen("m", len(m), len(w))
	checkLen("v", len(v), len(w))
	n := s.bulk(w, g, m, v)
	s.twin(w[n:], g[n:], m[n:], v[n:])
}

func (s *AdamStep) twin(w, g, m, v []float32) {
	g, m, v = g[:len(w)], m[:len(w)], v[:len(w)]
	for i, x := range w {
		d := g[i] + float32(s.Coupled*x)
		m[i] += float32(s.Rest1 * (d - m[i]))
		v[i] = float32(v[i]*s.Beta2) + float32(float32(d*s.Rest2)*d)
		root := float32(math.Sqrt(float64(v[i])))
		step := m[i] / (float32(root*s.Correction) + s.Epsilon)
		w[i] = float32(x*s.Shrink) + float32(s.Rate*step)
	}
}
