package conv

// A sampler adds up elements of a channel around one place, with weights that are the products of
// those along each axis.
type sampler[F float] struct {
	at     []int // offsets of the elements
	weight []F

	nextAt     []int
	nextWeight []F
}

// reset starts with nothing along no axis.
func (s *sampler[F]) reset() { s.at, s.weight = append(s.at[:0], 0), append(s.weight[:0], 1) }

// axis adds the next axis, of some length: places along it and their weights. Places that are
// negative lie outside and count as 0.
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
