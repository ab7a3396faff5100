package memory

import "slices"

// A schedule is the steps of each node in a training step.
type schedule struct {
	*Tape
	segments          []int
	recompute, back   []int // steps of the recomputation and of the backward pass of a node; -1 for none
	consumers, savers [][]int
	producer          []int // of values; -1 for inputs
	bufferOf          []int // of values
	buffers           []buffer
	passes            *Passes
	loss              int
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
	s.assignBuffers()
	return s, nil
}

// steps orders all passes.
func (s *schedule) steps() {
	n := len(s.Nodes)
	s.recompute, s.back = slices.Repeat([]int{-1}, n), slices.Repeat([]int{-1}, n)
	for _, node := range s.Nodes {
		s.passes.Steps = append(s.passes.Steps, node.Name)
	}
	s.passes.Steps = append(s.passes.Steps, lossName)
	end := n
	for k, from := range slices.Backward(s.segments) {
		for i := from; i < end && k < len(s.segments)-1; i++ {
			s.recompute[i] = len(s.passes.Steps)
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

// segment returns the segment of node i.
func (s *schedule) segment(i int) int {
	k, found := slices.BinarySearch(s.segments, i)
	if !found {
		k--
	}
	return k
}

// relate records producer, consumers and savers of each value.
func (s *schedule) relate() {
	s.consumers, s.savers = make([][]int, len(s.Values)), make([][]int, len(s.Values))
	s.producer = slices.Repeat([]int{-1}, len(s.Values))
	for i, n := range s.Nodes {
		for _, v := range n.Makes {
			s.producer[v] = i
		}
		for _, v := range n.Reads {
			s.consumers[v] = append(s.consumers[v], i)
		}
		for _, v := range n.Saves {
			if n.Backward {
				s.savers[v] = append(s.savers[v], i)
			}
		}
	}
}
