package memory

import "slices"

// A schedule knows the steps of each node.
type schedule struct {
	*Tape
	segments        []int
	again, back     []int // the step at which a node runs again, and at which its backward pass does; -1 for none
	readers, savers [][]int
	maker           []int // of values; -1 for what is given
	room            []int // of values
	rooms           []room
	passes          *Passes
	loss            int
}

func newSchedule(t *Tape, segments []int) (*schedule, error) {
	if err := t.check(segments); err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		segments = []int{0}
	}
	s := &schedule{Tape: t, segments: segments, loss: len(t.Nodes), passes: &Passes{Layers: make([]Layer, len(t.Nodes))}}
	s.steps()
	s.relate()
	s.share()
	return s, nil
}

// steps puts all passes in order.
func (s *schedule) steps() {
	n := len(s.Nodes)
	s.again, s.back = slices.Repeat([]int{-1}, n), slices.Repeat([]int{-1}, n)
	for _, node := range s.Nodes {
		s.passes.Steps = append(s.passes.Steps, node.Name)
	}
	s.passes.Steps = append(s.passes.Steps, lossName)
	end := n
	for k, from := range slices.Backward(s.segments) {
		for i := from; i < end && k < len(s.segments)-1; i++ {
			s.again[i] = len(s.passes.Steps)
			s.passes.Steps = append(s.passes.Steps, s.Nodes[i].Name+" again")
		}
		for i := end - 1; i >= from; i-- {
			if s.Nodes[i].Backward {
				s.back[i] = len(s.passes.Steps)
				s.passes.Steps = append(s.passes.Steps, s.Nodes[i].Name+" backward")
			}
		}
		end = from
	}
}

// segment is the stretch that node i is in.
func (s *schedule) segment(i int) int {
	k, found := slices.BinarySearch(s.segments, i)
	if !found {
		k--
	}
	return k
}

// relate notes who makes, reads and saves each value.
func (s *schedule) relate() {
	s.readers, s.savers = make([][]int, len(s.Values)), make([][]int, len(s.Values))
	s.maker = slices.Repeat([]int{-1}, len(s.Values))
	for i, n := range s.Nodes {
		for _, v := range n.Makes {
			s.maker[v] = i
		}
		for _, v := range n.Reads {
			s.readers[v] = append(s.readers[v], i)
		}
		for _, v := range n.Saves {
			if n.Backward {
				s.savers[v] = append(s.savers[v], i)
			}
		}
	}
}
