package stages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/memory"
)

// Options say how a model is cut.
type Options struct {
	Stages int
	By     string           // what makes a stage large: one of Costs
	Batch  int64            // size of open batch axes that values are measured with; 0 for 1
	Dims   map[string]int64 // sizes of other open axes by their names
}

// Costs are what stages can be balanced by.
func Costs() []string { return []string{"weights", "activations", "flops"} }

// A Plan is a model cut into stages. All sizes are bytes.
type Plan struct {
	By       string   `json:"by"`
	Stages   []*Stage `json:"stages"`
	Shared   []Shared `json:"shared_weights"`
	Parallel []Pair   `json:"tensor_parallel"` // weights to cut within a stage, over as many devices as there are stages
	Unknown  int      `json:"unknown_values"`  // whose size only a run tells: they are not counted
	starts   []int
}

// A Stage is nodes that run on one device.
type Stage struct {
	Nodes   int    `json:"nodes"` // with those that compute with constants alone
	First   string `json:"first_node"`
	Last    string `json:"last_node"`
	Cost    int64  `json:"cost"`    // what stages are balanced by
	Weights int64  `json:"weights"` // of constants, each once
	Peak    int64  `json:"peak"`    // the most bytes of values alive at one node, what the stage is given among them
	Inputs  []Port `json:"inputs"`
	Outputs []Port `json:"outputs"`
	Handed  int64  `json:"handed_on"` // across the cut behind the stage
	Crosses []Port `json:"crosses"`   // these values: some may come from earlier stages, and skip the next one
}

// A Port is a value that goes from one stage to another.
type Port struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	From  int    `json:"from_stage"` // 0 for inputs of the model
}

// A Shared weight is one that several stages hold.
type Shared struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Stages []int  `json:"stages"` // from 1
}

// New cuts m: the largest stage is as small as it can be, then as few bytes as can be cross the
// cuts. It reads no weights and leaves m as it is.
func New(ctx context.Context, m *ir.Model, o Options) (*Plan, error) {
	p, _, err := cut(ctx, m, o)
	return p, err
}

// cut is New, with the types to declare of the values that go from stage to stage.
func cut(ctx context.Context, m *ir.Model, o Options) (*Plan, map[string]*ir.Type, error) {
	out, err := newOutline(m.Graph)
	if err != nil {
		return nil, nil, err
	}
	types, err := typesOf(ctx, m, dataset.Random{Batch: o.Batch, Dims: o.Dims})
	if err != nil {
		return nil, nil, err
	}
	c := &cutter{outline: out, types: types}
	p := &Plan{By: o.By, Parallel: c.pairs(int64(o.Stages))}
	l, err := c.line(o.By)
	if err != nil {
		return nil, nil, err
	}
	if p.starts, err = l.partition(o.Stages); err != nil {
		return nil, nil, err
	}
	declared := map[string]*ir.Type{}
	for k := range o.Stages {
		s, err := c.stage(p.starts, k, declared)
		if err != nil {
			return nil, nil, err
		}
		s.Cost = l.cost(p.starts[k], p.starts[k+1])
		p.Stages = append(p.Stages, s)
	}
	p.Shared, p.Unknown = c.shared(p.starts), c.unknown()
	return p, declared, nil
}

// A cutter knows what cuts cost.
type cutter struct {
	*outline
	types *types
}

func (c *cutter) line(by string) (*line, error) {
	if c.types.sizes == nil && by != "weights" {
		return nil, errors.New("the engine cannot plan a run of the model, so that stages can be balanced by weights alone")
	}
	n := len(c.nodes)
	l := &line{own: make([]int64, n), needs: make([][]int, n), cross: make([]int64, n+1), makes: make([]int, n+1)}
	switch by {
	case "weights":
		c.weights(l)
	case "activations":
		for i, node := range c.nodes {
			for _, v := range node.Outputs {
				l.own[i] += c.bytesOf(v)
			}
		}
	case "flops":
		for i, node := range c.nodes {
			l.own[i] = c.types.flops(node)
		}
	default:
		return nil, fmt.Errorf("stages are not balanced by %q", by)
	}
	c.crossings(l)
	return l, nil
}

func (c *cutter) bytesOf(v *ir.Value) int64 {
	if v == nil {
		return 0
	}
	return c.types.bytes(v)
}

// weights makes constants the things that a stage's nodes share.
func (c *cutter) weights(l *line) {
	index := map[*ir.Value]int{}
	for i, n := range c.nodes {
		for _, v := range c.consts[n] {
			at, known := index[v]
			if !known {
				at = len(l.things)
				index[v] = at
				l.things = append(l.things, v.Const.Bytes())
			}
			l.needs[i] = append(l.needs[i], at)
		}
	}
}

// crossings sums up what crosses each cut, and rules those cuts out that a value crosses which no file
// can declare.
func (c *cutter) crossings(l *line) {
	bytes, barred := make([]int64, len(l.cross)+1), make([]int, len(l.cross)+1)
	for _, h := range c.hops() {
		bytes[h.first+1] += c.types.bytes(h.value)
		bytes[h.last+1] -= c.types.bytes(h.value)
		if h.value.Ambiguous || c.types.declaration(h.value) == nil {
			barred[h.first+1]++
			barred[h.last+1]--
		}
		for at := h.first + 1; at <= c.last[h.value]; at++ {
			l.makes[at] = max(l.makes[at], h.first)
		}
	}
	open, across := 0, int64(0)
	for at := range l.cross {
		open, across = open+barred[at], across+bytes[at]
		if l.cross[at] = across; open > 0 {
			l.cross[at] = -1
		}
	}
}

// cost is that of the stage from one node to in front of another.
func (l *line) cost(first, end int) int64 {
	var total int64
	l.costs(first, unreached, func(at int, cost int64) {
		if at == end {
			total = cost
		}
	})
	return total
}

// stage is the facts of stage k. It adds the types of what the stage gives.
func (c *cutter) stage(starts []int, k int, declared map[string]*ir.Type) (*Stage, error) {
	first, end := starts[k], starts[k+1]
	s := &Stage{Nodes: end - first, First: c.nodes[first].Label(), Last: c.nodes[end-1].Label(), Inputs: []Port{}, Outputs: []Port{}, Crosses: []Port{}}
	part := c.part(starts, k)
	s.Nodes += len(part.aside)
	for _, v := range part.consts {
		s.Weights += v.Const.Bytes()
	}
	for _, v := range part.inputs {
		s.Inputs = append(s.Inputs, c.port(v, starts))
	}
	for _, v := range part.outputs {
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

func (c *cutter) port(v *ir.Value, starts []int) Port {
	p := Port{Name: v.Name}
	if spec, known := c.types.spec(v); known {
		p.Type, p.Bytes = spec.String(), spec.Bytes()
	}
	if at, cut := c.at[v.Producer()]; cut {
		p.From = stageOf(starts, at) + 1
	}
	return p
}

// stageOf is the stage that has a node, from 0.
func stageOf(starts []int, node int) int {
	k, found := slices.BinarySearch(starts, node)
	if !found {
		k--
	}
	return k
}

// views are operators whose output is their input's bytes in another shape.
func views() map[string]bool {
	return map[string]bool{"Reshape": true, "Flatten": true, "Squeeze": true, "Unsqueeze": true, "Identity": true}
}

// peak is the most bytes of values alive at a node of the part: what is given from the start, or from
// where an earlier node made it, to its last reader, and to the end where others need it. Nodes' scratch is
// not counted.
func (c *cutter) peak(p *part, first, end int) (int64, error) {
	var blocks []memory.Block
	index := map[*ir.Value]int{}
	live := func(v *ir.Value, from, to int) {
		index[v] = len(blocks)
		blocks = append(blocks, memory.Block{Name: v.Name, Kind: memory.Activation, Bytes: c.types.bytes(v), First: from, Last: to})
	}
	for _, v := range p.inputs {
		live(v, 0, 0)
	}
	view := views()
	for i, n := range c.nodes[first:end] {
		for v := range reads(n) {
			if at, known := index[v]; known {
				blocks[at].Last = max(blocks[at].Last, i)
			}
		}
		if at, known := index[n.Input(0)]; known && view[n.Op.Type] && len(n.Outputs) == 1 {
			index[n.Outputs[0]] = at
			continue
		}
		for _, v := range n.Outputs {
			if v != nil {
				live(v, i, i)
			}
		}
	}
	for _, v := range p.outputs {
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

// shared are the constants that several stages need, in the order of their first use.
func (c *cutter) shared(starts []int) []Shared {
	in := map[*ir.Value][]int{}
	var order []*ir.Value
	for i, n := range c.nodes {
		for _, v := range c.consts[n] {
			if in[v] == nil {
				order = append(order, v)
			}
			in[v] = add(in[v], stageOf(starts, i)+1)
		}
	}
	list := []Shared{}
	for _, v := range order {
		if len(in[v]) > 1 {
			list = append(list, Shared{v.Name, v.Const.Bytes(), in[v]})
		}
	}
	return list
}

// unknown counts the values that nodes make and that have no size.
func (c *cutter) unknown() int {
	count := 0
	for i := range c.nodes {
		for _, v := range c.made(i) {
			if _, known := c.types.spec(v); !known {
				count++
			}
		}
	}
	return count
}
