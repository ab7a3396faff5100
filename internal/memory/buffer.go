package memory

import "slices"

// A buffer is memory of one value, or of several values one after another.
type buffer struct {
	values []int
	bytes  int64
	first  int  // the producer of the first of them; -1 for inputs
	shared bool // one of the values has several consumers, or one in the backward pass, or is an output
}

// assignBuffers assigns each value a buffer: that of a value that it overwrites, or a new one.
func (s *schedule) assignBuffers() {
	s.bufferOf = slices.Repeat([]int{-1}, len(s.Values))
	for v := range s.Values {
		if s.producer[v] < 0 {
			s.own(v)
		}
	}
	for i, n := range s.Nodes {
		for k, v := range n.Makes {
			if from := s.from(i, n, v); k == 0 && from >= 0 {
				s.bufferOf[v] = s.bufferOf[from]
				b := &s.buffers[s.bufferOf[v]]
				b.values, b.shared = append(b.values, v), b.shared || s.isShared(v)
				continue
			}
			s.own(v)
		}
	}
}

func (s *schedule) own(v int) {
	s.bufferOf[v] = len(s.buffers)
	s.buffers = append(s.buffers, buffer{values: []int{v}, bytes: s.Values[v].Bytes, first: s.producer[v], shared: s.isShared(v)})
}

// from returns the value whose buffer the first result of node i reuses, -1 for none.
func (s *schedule) from(i int, n TapeNode, result int) int {
	if n.View && len(n.Reads) > 0 && s.Values[n.Reads[0]].Bytes == s.Values[result].Bytes {
		return n.Reads[0]
	}
	for _, v := range n.Over {
		if s.Values[v].Bytes == s.Values[result].Bytes && s.free(s.buffers[s.bufferOf[v]], i) {
			return v
		}
	}
	return -1
}

// free reports whether node i may write in place: the buffer has no other consumers, also in the backward pass, and is produced in the
// same segment, which would be recomputed from overwritten values otherwise.
func (s *schedule) free(r buffer, i int) bool {
	return r.first >= 0 && !r.shared && s.segment(r.first) == s.segment(i)
}

func (s *schedule) isShared(v int) bool {
	return len(s.consumers[v]) > 1 || len(s.savers[v]) > 0 || s.Values[v].Output
}
