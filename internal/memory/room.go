package memory

import "slices"

// A room is memory that one value has, or several one after another.
type room struct {
	values []int
	bytes  int64
	first  int // the node that makes the first of them; -1 if it is given
}

// share gives each value a room: that of a value which it may take over, or one of its own.
func (s *schedule) share() {
	s.room = slices.Repeat([]int{-1}, len(s.Values))
	for v := range s.Values {
		if s.maker[v] < 0 {
			s.own(v)
		}
	}
	for i, n := range s.Nodes {
		for k, v := range n.Makes {
			if from := s.from(i, n, v); k == 0 && from >= 0 {
				s.room[v] = s.room[from]
				s.rooms[s.room[v]].values = append(s.rooms[s.room[v]].values, v)
				continue
			}
			s.own(v)
		}
	}
}

func (s *schedule) own(v int) {
	s.room[v] = len(s.rooms)
	s.rooms = append(s.rooms, room{values: []int{v}, bytes: s.Values[v].Bytes, first: s.maker[v]})
}

// from is the value whose room the first result of node i gets, -1 for none.
func (s *schedule) from(i int, n TapeNode, result int) int {
	if n.View && len(n.Reads) > 0 && s.Values[n.Reads[0]].Bytes == s.Values[result].Bytes {
		return n.Reads[0]
	}
	for _, v := range n.Over {
		if s.Values[v].Bytes == s.Values[result].Bytes && s.free(s.rooms[s.room[v]], i) {
			return v
		}
	}
	return -1
}

// free reports whether node i may write over the room: nobody else reads what is there, on the way
// back neither, and it is made in the same stretch, which would find it overwritten.
func (s *schedule) free(r room, i int) bool {
	if r.first < 0 || s.segment(r.first) != s.segment(i) {
		return false
	}
	for _, v := range r.values {
		if len(s.readers[v]) > 1 || len(s.savers[v]) > 0 || s.Values[v].Output {
			return false
		}
	}
	return true
}
