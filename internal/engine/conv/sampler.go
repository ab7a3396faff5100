package conv

// A sampler sums elements of a channel around one point, with weights that are the products of those along each axis.
type sampler[F float] struct {
	at     []int // offsets of the elements
	weight []F

	nextAt     []int
	nextWeight []F
}

// reset starts with no axes.
func (s *sampler[F]) reset() { s.at, s.weight = append(s.at[:0], 0), append(s.weight[:0], 1) }

// axis adds the next axis: positions along it and their weights. Negative positions are outside and count as 0.
func (s *sampler[F]) axis(length int, places []int, weights []F) {
	at, weight := s.nextAt[:0], s.nextWeight[:0]
	for i := range s.at {
		for k, p := range places {
			if p >= 0 {
				at = append(at, s.at[i]*length+p)
				weight = append(weight, s.weight[i]*weights[k])
			}
		}
	}
	// The buffers swap, as the next axis reads what this one wrote.
	s.nextAt, s.nextWeight = s.at, s.weight
	s.at, s.weight = at, weight
}

// sum is the weighted sum of elements of a channel.
func (s *sampler[F]) sum(x []F) F {
	sum := F(0)
	for i, at := range s.at {
		sum += s.weight[i] * x[at]
	}
	return sum
}
