package partition

import (
	"slices"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/report/partition"
)

// stage is the description of stage k. It adds the types of the stage's outputs.
func (c *cutter) stage(starts []int, k int, declared map[string]*ir.Type) (*partition.Stage, error) {
	first, end := starts[k], starts[k+1]
	s := &partition.Stage{
		Nodes:   end - first,
		First:   c.nodes[first].Label(),
		Last:    c.nodes[end-1].Label(),
		Inputs:  []partition.Port{},
		Outputs: []partition.Port{},
		Crosses: []partition.Port{},
	}
	part := c.part(starts, k)
	s.Nodes += len(part.constantNodes)
	for _, v := range part.consts.list {
		s.Weights += v.Const.Bytes()
	}
	for _, v := range part.inputs.list {
		s.Inputs = append(s.Inputs, c.port(v, starts))
	}
	for _, v := range part.outputs.list {
		declared[v.Name] = c.types.declaration(v)
		s.Outputs = append(s.Outputs, c.port(v, starts))
	}
	for _, h := range c.hops() {
		if h.first < end && h.last >= end {
			s.Crosses = append(s.Crosses, c.port(h.value, starts))
			s.Handed += c.types.bytes(h.value)
		}
	}
	var err error
	s.Peak, err = c.peak(part, first, end)
	return s, err
}

func (c *cutter) port(v *ir.Value, starts []int) partition.Port {
	p := partition.Port{Name: v.Name}
	if spec, known := c.types.spec(v); known {
		p.Type, p.Bytes = spec.String(), spec.Bytes()
	}
	if at, cut := c.at[v.Producer()]; cut {
		p.From = stageOf(starts, at) + 1
	}
	return p
}

// stageOf is the index of the stage of a node, from 0.
func stageOf(starts []int, node int) int {
	k, found := slices.BinarySearch(starts, node)
	if !found {
		k--
	}
	return k
}

// peak is the maximum number of bytes of values live at a node of the part. A value is live from its producer, or
// from the start for inputs, to its last consumer, or to the end for outputs. Scratch memory of nodes is not
// counted.
func (c *cutter) peak(p *part, first, end int) (int64, error) {
	var blocks []memory.Block
	index := map[*ir.Value]int{}
	live := func(v *ir.Value, from, to int) {
		index[v] = len(blocks)
		blocks = append(
			blocks,
			memory.Block{Name: v.Name, Kind: memory.Activation, Bytes: c.types.bytes(v), First: from, Last: to},
		)
	}
	for _, v := range p.inputs.list {
		live(v, 0, 0)
	}
	for i, n := range c.nodes[first:end] {
		for v := range reads(n) {
			if at, known := index[v]; known {
				blocks[at].Last = max(blocks[at].Last, i)
			}
		}
		// A view (Reshape, Squeeze, …) has the memory of its input, whose lifetime it extends.
		if at, known := index[n.Input(0)]; known && operator.Of(n).Move == operator.View && len(n.Outputs) == 1 {
			index[n.Outputs[0]] = at
			continue
		}
		for _, v := range n.Outputs {
			if v != nil {
				live(v, i, i)
			}
		}
	}
	for _, v := range p.outputs.list {
		if at, known := index[v]; known {
			blocks[at].Last = end - first - 1
		}
	}
	line, err := memory.NewTimeline(blocks, end-first)
	if err != nil {
		return 0, err
	}
	return line.Peak, nil
}

// sharedWeights are the constants that several stages need, in the order of their first use.
func (c *cutter) sharedWeights(starts []int) []partition.Shared {
	in := map[*ir.Value][]int{}
	var order []*ir.Value
	for i, n := range c.nodes {
		for _, v := range c.consts[n] {
			if in[v] == nil {
				order = append(order, v)
			}
			// Nodes are in order, and so are stages: only the last one can be equal.
			if stage := stageOf(starts, i) + 1; len(in[v]) == 0 || in[v][len(in[v])-1] != stage {
				in[v] = append(in[v], stage)
			}
		}
	}
	list := []partition.Shared{}
	for _, v := range order {
		if len(in[v]) > 1 {
			list = append(list, partition.Shared{Name: v.Name, Bytes: v.Const.Bytes(), Stages: in[v]})
		}
	}
	return list
}

// unknown is the number of node outputs of unknown size.
func (c *cutter) unknown() int {
	count := 0
	for i := range c.nodes {
		for _, v := range c.laterOutputs(i) {
			if _, known := c.types.spec(v); !known {
				count++
			}
		}
	}
	return count
}
