package layout

import (
	"fmt"
	"math"
)

// An Effect is what channels last would change.
type Effect struct {
	Added    []Move // transposes that would be needed and are not there
	Kept     []Move // that are there and still needed
	Vanished []Move // that are there and not needed any more

	First, Last Unfolding // of all convolutions, channels first and channels last
}

// A Move is one Transpose, of a value and maybe for several readers.
type Move struct {
	Value string
	Bytes int64 // read and written: twice the value's
}

// Saved is how many bytes less are moved channels last; negative if it is more.
func (e *Effect) Saved() int64 {
	return Bytes(e.Vanished) - Bytes(e.Added) + e.First.Bytes - e.Last.Bytes
}

// Bytes is the sum over moves.
func Bytes(ms []Move) int64 {
	var n int64
	for _, m := range ms {
		n += m.Bytes
	}
	return n
}

// ChannelsLast counts what it would do to g if all of its sensitive nodes were channels
// last, and all others as is best. Inputs and outputs of the graph stay as they are
// declared, and so does what breaking nodes read and write.
//
// No other choice of layouts moves fewer bytes by transposes, or as many bytes by fewer of
// them: it is a minimum cut. On one side are the nodes that are channels last, on the
// other those that are channels first, agnostic nodes choose, and a value whose writer
// and some reader are on different sides costs one Transpose, however many such readers
// there are. A transpose that is there joins its two ends into one value that may change
// sides on its way.
func ChannelsLast(g *Graph) (*Effect, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	c := g.coded()
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

// add counts the transposes of one image.
func (e *Effect) add(g *Graph, m *image, split bool) {
	v := g.Values[m.value]
	if v.Same {
		return
	}
	move := Move{v.Name, 2 * v.Bytes}
	there := m.transposes
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
			return fmt.Errorf("layout: node %q: %d bytes of patches cannot be counted together with the others", n.Name, f.Bytes)
		}
		e.First, e.Last = e.First.plus(f), e.Last.plus(l)
	}
	return nil
}

// An image is a value together with its transposes: the same pixels, whatever their order.
// Its writer and readers are nodes of the network, source for channels last and sink for
// channels first.
type image struct {
	value      int
	writer     int
	readers    []int
	transposes int
}

// split reports whether some reader is on another side than the writer.
func (m *image) split(last func(int) bool) bool {
	for _, r := range m.readers {
		if last(r) != last(m.writer) {
			return true
		}
	}
	return false
}

// images are all of them, in the order of their values.
func (c *coding) images() ([]*image, error) {
	of := make([]*image, len(c.Values))
	var all []*image
	for v, w := range c.writers {
		if w < 0 || !c.roles[w].moves() {
			of[v] = &image{value: v, writer: c.end(w, v)}
			all = append(all, of[v])
		}
	}
	for v := range c.Values {
		root := v
		for hops := 0; of[root] == nil; hops++ {
			if hops > len(c.Nodes) {
				return nil, fmt.Errorf("layout: value %q is made of itself", c.Values[v].Name)
			}
			root = c.Nodes[c.writers[root]].Inputs[0]
		}
		m := of[root]
		for _, r := range c.readers[v] {
			if c.roles[r].moves() {
				m.transposes++
			} else {
				m.readers = append(m.readers, c.end(r, v))
			}
		}
		if c.Values[v].Output {
			m.readers = append(m.readers, c.end(-1, v))
		}
	}
	return all, nil
}

// end is the node of the network that stands for node i of the graph where it has to do
// with value v. What is outside the graph is -1.
func (c *coding) end(i, v int) int {
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

// cut decides which nodes of the network are channels last.
func (c *coding) cut(images []*image) (lasts func(int) bool, err error) {
	f := &network{edges: make([][]int, sink+1+len(c.Nodes))}
	// Bytes count first and transposes second, in one number.
	unit, left := int64(len(images)+1), int64(math.MaxInt64/4)
	for _, m := range images {
		v := c.Values[m.value]
		if v.Bytes < 0 || v.Bytes > (left-1)/unit {
			return nil, fmt.Errorf("layout: value %q: %d bytes cannot be counted together with the others", v.Name, v.Bytes)
		}
		price := v.Bytes*unit + 1
		left -= price
		if v.Same {
			price = 0
		}
		m.price(f, price)
	}
	f.fill()
	return f.reached, nil
}

// price makes it cost so much if m is split. With one reader that is one edge. With more,
// the value passes a gate on each way, so that it pays once.
func (m *image) price(f *network, price int64) {
	if len(m.readers) == 1 {
		f.edge(m.writer, m.readers[0], price, price)
		return
	}
	out, back := f.node(), f.node()
	f.edge(m.writer, out, price, 0)
	f.edge(back, m.writer, price, 0)
	for _, r := range m.readers {
		f.edge(out, r, never, 0)
		f.edge(r, back, never, 0)
	}
}
