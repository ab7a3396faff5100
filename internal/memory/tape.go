package memory

import (
	"fmt"
	"slices"
)

// A Tape is the forward pass of a training step, with the values that the backward pass of each node reads.
type Tape struct {
	Values []TapeValue
	Nodes  []TapeNode // in the order in which they run
}

// A TapeValue is a result of a node, or an input of the step.
type TapeValue struct {
	Name   string
	Bytes  int64
	Grad   bool // it has a gradient
	Output bool // the loss reads it
}

// A TapeNode reads and makes values, given by their indices.
type TapeNode struct {
	Name         string
	Reads, Makes []int
	Saves        []int // values that its backward pass reads: of Reads and Makes
	Extra        int64 // additional bytes for its backward pass: indices, statistics
	Over         []int // of Reads: the first result may be written in place of one of them
	View         bool  // the first result is the first of Reads in another shape
	Backward     bool  // it has a backward pass
}

// A Layer is the memory of one node in a training step.
type Layer struct {
	Output   int64 // of results, without those in place
	Kept     int64 // of results and extra data, until the backward pass
	Gradient int64 // of gradients that its backward pass creates
}

// Passes are a training step over time. Gradients among the blocks are those of values; those of
// parameters are States.
type Passes struct {
	Layers []Layer
	Blocks []Block
	Steps  []string
}

// lossName is the step between the forward and the backward pass.
const lossName = "loss"

// Plan schedules a training step: forward pass, loss, backward pass. Segments are the first nodes of segments whose values are recomputed
// before their backward pass, but for those that other segments read (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016,
// arXiv:1604.06174); the last segment stores its values. Nil is one segment.
func (t *Tape) Plan(segments []int) (*Passes, error) {
	s, err := newSchedule(t, segments)
	if err != nil {
		return nil, err
	}
	for _, r := range s.buffers {
		s.place(r)
	}
	for i, n := range t.Nodes {
		s.extra(i, n)
	}
	return s.passes, nil
}

func (t *Tape) check(segments []int) error {
	for i, at := range segments {
		if i == 0 && at != 0 || i > 0 && at <= segments[i-1] || at >= max(1, len(t.Nodes)) {
			return fmt.Errorf("memory: segments begin at %v of %d nodes", segments, len(t.Nodes))
		}
	}
	made := map[int]bool{}
	for _, n := range t.Nodes {
		for _, v := range slices.Concat(n.Reads, n.Makes, n.Saves, n.Over) {
			if v < 0 || v >= len(t.Values) {
				return fmt.Errorf("memory: node %q: no value %d", n.Name, v)
			}
		}
		for _, v := range n.Makes {
			if made[v] {
				return fmt.Errorf("memory: value %q is made twice", t.Values[v].Name)
			}
			made[v] = true
		}
	}
	return nil
}
