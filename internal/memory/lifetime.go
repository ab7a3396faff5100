package memory

import "slices"

// place makes the blocks of a room, and of its gradient.
func (s *schedule) place(i int, r room) {
	forward, back := s.needs(r)
	name := s.Values[r.values[len(r.values)-1]].Name
	if r.first >= 0 {
		s.passes.Layers[r.first].Output += r.bytes
	}
	if s.keeps(r) {
		s.add(name, Activation, r.bytes, max(0, r.first), max(forward, back))
	} else {
		s.add(name, Activation, r.bytes, r.first, forward)
		s.add(name, Activation, r.bytes, s.again[r.first], max(s.again[r.first], back))
	}
	if r.first >= 0 && back > s.loss && s.keeps(r) {
		s.passes.Layers[r.first].Kept += r.bytes
	}
	s.gradient(name, r)
}

// needs are the last steps of the forward pass, and behind it, that read the room.
func (s *schedule) needs(r room) (forward, back int) {
	forward = max(0, r.first)
	for _, v := range r.values {
		forward = max(forward, s.maker[v])
		if s.Values[v].Output {
			forward = s.loss
		}
		for _, i := range s.readers[v] {
			forward = max(forward, i)
			back = max(back, s.again[i])
		}
		for _, i := range s.savers[v] {
			back = max(back, s.back[i])
		}
	}
	return forward, back
}

// keeps reports whether the room lives through: what is given, what the last stretch makes, and what other
// stretches read.
func (s *schedule) keeps(r room) bool {
	if r.first < 0 || s.again[r.first] < 0 {
		return true
	}
	here := s.segment(r.first)
	elsewhere := func(i int) bool { return s.segment(i) != here }
	for _, v := range r.values {
		if s.Values[v].Output || slices.ContainsFunc(s.readers[v], elsewhere) || slices.ContainsFunc(s.savers[v], elsewhere) {
			return true
		}
	}
	return false
}

// gradient lives from the backward pass that first adds to it to that of the node which made the value.
func (s *schedule) gradient(name string, r room) {
	if r.first < 0 || s.back[r.first] < 0 {
		return
	}
	born, by := -1, -1
	for _, v := range r.values {
		if !s.Values[v].Grad {
			continue
		}
		if s.Values[v].Output {
			born, by = s.loss, -1
			break
		}
		for _, i := range s.readers[v] {
			if at := s.back[i]; at >= 0 && s.room[v] != s.roomMadeBy(i) && (born < 0 || at < born) {
				born, by = at, i
			}
		}
	}
	if born < 0 {
		return
	}
	s.add("gradient of "+name, Gradient, r.bytes, born, s.back[r.first])
	if by >= 0 {
		s.passes.Layers[by].Gradient += r.bytes
	}
}

// roomMadeBy is the room that the first result of node i has.
func (s *schedule) roomMadeBy(i int) int {
	if len(s.Nodes[i].Makes) == 0 {
		return -1
	}
	return s.room[s.Nodes[i].Makes[0]]
}

// beside makes the blocks of what node i keeps apart from values.
func (s *schedule) beside(i int, n TapeNode) {
	if n.Beside == 0 || s.back[i] < 0 {
		return
	}
	if s.again[i] < 0 {
		s.passes.Layers[i].Kept += n.Beside
		s.add("beside "+n.Name, Activation, n.Beside, i, s.back[i])
		return
	}
	s.add("beside "+n.Name, Activation, n.Beside, i, i)
	s.add("beside "+n.Name, Activation, n.Beside, s.again[i], s.back[i])
}

func (s *schedule) add(name string, k Kind, bytes int64, first, last int) {
	if bytes > 0 {
		s.passes.Blocks = append(s.passes.Blocks, Block{Name: name, Kind: k, Bytes: bytes, First: first, Last: last})
	}
}
