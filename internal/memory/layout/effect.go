package layout

import (
	"fmt"
	"math"
)

// An Effect is the result of changing a model to channels last.
type Effect struct {
	Added    []Move // transposes to insert
	Kept     []Move // transposes of the model that are still needed
	Vanished []Move // transposes of the model that become redundant

	First, Last Unfolding // im2col of all convolutions, channels first and channels last
}

// A Move is one Transpose of a value; several consumers may share it.
type Move struct {
	Value string
	Bytes int64 // read and written: twice the size of the value
}

// Saved is the reduction of moved bytes by channels last, negative for an increase.
func (e *Effect) Saved() int64 {
	return byteCount(e.Vanished) - byteCount(e.Added) + e.First.Bytes - e.Last.Bytes
}

// Bytes is the sum over moves.
func byteCount(ms []Move) int64 {
	var n int64
	for _, m := range ms {
		n += m.Bytes
	}
	return n
}

// ChannelsLast computes the effect of making all sensitive nodes of g channels last and choosing the best layout for
// agnostic nodes. Inputs and outputs of the graph and values of breaking nodes keep their layouts.
//
// The result is optimal: transposes move the minimum number of bytes and, among such solutions, are as few as possible.
// It is a minimum cut between nodes that are channels last and nodes that are channels first. A value whose producer
// and at least one consumer are on different sides costs one Transpose, whatever the number of such consumers. The
// input and output of an existing Transpose count as one value.
func ChannelsLast(g *Graph) (*Effect, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	c := g.assign()
	images, err := c.images()
	if err != nil {
		return nil, err
	}
	lasts, err := c.cut(images)
	if err != nil {
		return nil, err
	}
	e := &Effect{}
	for _, m := range images {
		e.add(g, m, m.split(lasts))
	}
	return e, e.unfold(g)
}

// add counts the transposes of image m.
func (e *Effect) add(g *Graph, m *image, split bool) {
	v := g.Values[m.value]
	if v.Same {
		return
	}
	move := Move{v.Name, 2 * v.Bytes}
	there := m.transposes
	// The transposes of an image are between its two layouts: one of them serves all consumers on the other side,
	// the rest vanish.
	switch {
	case split && there > 0:
		e.Kept = append(e.Kept, move)
		there--
	case split:
		e.Added = append(e.Added, move)
	}
	for range there {
		e.Vanished = append(e.Vanished, move)
	}
}

func (e *Effect) unfold(g *Graph) error {
	for _, n := range g.Nodes {
		if n.Unfolds == nil {
			continue
		}
		f, l, err := n.Unfolds.unfold()
		if err != nil {
			return fmt.Errorf("layout: node %q: %w", n.Name, err)
		}
		if f.Bytes > math.MaxInt64-e.First.Bytes {
			return fmt.Errorf("layout: node %q: %d bytes of patches overflow the total", n.Name, f.Bytes)
		}
		e.First, e.Last = e.First.plus(f), e.Last.plus(l)
	}
	return nil
}

// An image is a value together with its transposes: the same pixels in any layout. Its producer and consumers are nodes
// of the flow network: source for channels last, sink for channels first.
type image struct {
	value      int
	producer   int
	consumers  []int
	transposes int
}

// split reports whether a consumer has another layout than the producer.
func (m *image) split(last func(int) bool) bool {
	for _, r := range m.consumers {
		if last(r) != last(m.producer) {
			return true
		}
	}
	return false
}

// images returns all images in the order of their values.
func (c *assignment) images() ([]*image, error) {
	of := make([]*image, len(c.Values))
	var all []*image
	for v, w := range c.producers {
		if w < 0 || !c.roles[w].moves() {
			of[v] = &image{value: v, producer: c.end(w, v)}
			all = append(all, of[v])
		}
	}
	for v := range c.Values {
		root := v
		// A chain of transposes leads to the value that a node computes, with the layout of that as its image.
		for hops := 0; of[root] == nil; hops++ {
			if hops > len(c.Nodes) {
				return nil, fmt.Errorf("layout: value %q is part of a cycle", c.Values[v].Name)
			}
			root = c.Nodes[c.producers[root]].Inputs[0]
		}
		m := of[root]
		for _, r := range c.consumers[v] {
			if c.roles[r].moves() {
				m.transposes++
			} else {
				m.consumers = append(m.consumers, c.end(r, v))
			}
		}
		if c.Values[v].Output {
			// The environment reads it in its declared layout.
			m.consumers = append(m.consumers, c.end(-1, v))
		}
	}
	return all, nil
}

// end is the network node of graph node i as producer or consumer of value v; i is -1 for the graph's environment.
func (c *assignment) end(i, v int) int {
	switch {
	case i >= 0 && c.roles[i] == Sensitive:
		return source
	case i >= 0 && c.roles[i] == Agnostic:
		return sink + 1 + i
	case c.sides[v] == last:
		return source
	}
	return sink
}

// cut returns a function that reports whether a node of the network is channels last.
func (c *assignment) cut(images []*image) (lasts func(int) bool, err error) {
	f := &network{edges: make([][]int, sink+1+len(c.Nodes))}
	// A cost orders by bytes, then by the number of transposes.
	// A quarter of the integers: flow in one direction is added to the capacity of the other. A unit is more than
	// all transposes together.
	unit, left := int64(len(images)+1), int64(math.MaxInt64/4)
	for _, m := range images {
		v := c.Values[m.value]
		if v.Bytes < 0 || v.Bytes > (left-1)/unit {
			return nil, fmt.Errorf("layout: value %q: %d bytes are invalid or overflow the total", v.Name, v.Bytes)
		}
		price := v.Bytes*unit + 1
		left -= price
		// Still counted above, so that the order of values does not decide what overflows.
		if v.Same {
			price = 0
		}
		m.addCost(f, price)
	}
	f.fill()
	return f.reached, nil
}

// addCost adds the cost of splitting m to the network. A single consumer needs one edge. With several consumers, an
// auxiliary node per direction makes the cut pay the cost once.
func (m *image) addCost(f *network, price int64) {
	if len(m.consumers) == 1 {
		f.edge(m.producer, m.consumers[0], price, price)
		return
	}
	out, back := f.node(), f.node()
	f.edge(m.producer, out, price, 0)
	f.edge(back, m.producer, price, 0)
	for _, r := range m.consumers {
		// Of never, so that the cut is at the edge to the auxiliary node, once for all consumers.
		f.edge(out, r, never, 0)
		f.edge(r, back, never, 0)
	}
}
