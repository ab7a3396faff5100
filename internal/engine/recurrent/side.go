package recurrent

// A side is one direction of a layer.
type side struct {
	*layer
	d int
}

// stateAt is the offset of sequence n in Y_h, Y_c and the initial states.
func (s side) stateAt(n int) int {
	if s.batchFirst {
		return (n*s.D + s.d) * s.H
	}
	return (s.d*s.N + n) * s.H
}

// outputAt is the offset of step t of sequence n in Y.
func (s side) outputAt(t, n int) int {
	if s.batchFirst {
		return ((n*s.T+t)*s.D + s.d) * s.H
	}
	return ((t*s.D+s.d)*s.N + n) * s.H
}

// inputAt is the row of step t of sequence n in X.
func (s side) inputAt(t, n int) int {
	if s.batchFirst {
		return n*s.T + t
	}
	return t*s.N + n
}

// stepOf is the i-th step of sequence n, negative after its end.
func (s side) stepOf(i, n int) int {
	length := s.T
	if s.lens != nil {
		length = int(s.lens[n])
	}
	if i >= length {
		return -1
	}
	// Reversed from the end of the sequence, not of the padding.
	if s.reverse[s.d] {
		return length - 1 - i
	}
	return i
}
