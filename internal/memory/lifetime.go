package memory

import "slices"

// place adds the blocks of a buffer, and of its gradient.
func (s *schedule) place(r buffer) {
	forward, back := s.needs(r)
	name := s.Values[r.values[len(r.values)-1]].Name
	if r.first >= 0 {
		s.passes.Layers[r.first].Output += r.bytes
	}
	if s.keeps(r) {
		s.add(name, Activation, r.bytes, max(0, r.first), max(forward, back))
	} else {
		s.add(name, Activation, r.bytes, r.first, forward)
		s.add(name, Activation, r.bytes, s.recompute[r.first], max(s.recompute[r.first], back))
	}
	if r.first >= 0 && back > s.loss && s.keeps(r) {
		s.passes.Layers[r.first].Kept += r.bytes
	}
	s.gradient(name, r)
}

// needs returns the last steps of the forward and of the backward pass that read the buffer.
func (s *schedule) needs(r buffer) (forward, back int) {
	forward = max(0, r.first)
	for _, v := range r.values {
		forward = max(forward, s.producer[v])
		if s.Values[v].Output {
			forward = s.loss
		}
		for _, i := range s.consumers[v] {
			forward = max(forward, i)
			back = max(back, s.recompute[i])
		}
		for _, i := range s.savers[v] {
			back = max(back, s.back[i])
		}
	}
	return forward, back
}

// keeps reports whether the buffer is stored: inputs, results of the last segment, and values that other segments read.
func (s *schedule) keeps(r buffer) bool {
	if r.first < 0 || s.recompute[r.first] < 0 {
		return true
	}
	here := s.segment(r.first)
	elsewhere := func(i int) bool { return s.segment(i) != here }
	for _, v := range r.values {
		if s.Values[v].Output || slices.ContainsFunc(s.consumers[v], elsewhere) || slices.ContainsFunc(s.savers[v], elsewhere) {
			return true
		}
	}
	return false
}

// gradient adds the block of a gradient: from the backward pass that first adds to it to that of the value's producer.
func (s *schedule) gradient(name string, r buffer) {
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
		for _, i := range s.consumers[v] {
			if at := s.back[i]; at >= 0 && s.bufferOf[v] != s.bufferOfResult(i) && (born < 0 || at < born) {
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

// roomMadeBy returns the buffer of the first result of node i.
func (s *schedule) bufferOfResult(i int) int {
	if len(s.Nodes[i].Makes) == 0 {
		return -1
	}
	return s.bufferOf[s.Nodes[i].Makes[0]]
}

// extra adds the blocks of additional data that node i stores.
func (s *schedule) extra(i int, n TapeNode) {
	if n.Extra == 0 || s.back[i] < 0 {
		return
	}
	if s.recompute[i] < 0 {
		s.passes.Layers[i].Kept += n.Extra
		s.add("extra of "+n.Name, Activation, n.Extra, i, s.back[i])
		return
	}
	s.add("extra of "+n.Name, Activation, n.Extra, i, i)
	s.add("extra of "+n.Name, Activation, n.Extra, s.recompute[i], s.back[i])
}

func (s *schedule) add(name string, k Kind, bytes int64, first, last int) {
	if bytes > 0 {
		s.passes.Blocks = append(s.passes.Blocks, Block{Name: name, Kind: k, Bytes: bytes, First: first, Last: last})
	}
}
