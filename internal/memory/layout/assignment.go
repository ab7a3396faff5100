package layout

// A side is the layout of a value.
type side uint8

const (
	unknown side = iota
	first
	last
)

// opposite is the layout on the other end of a transpose.
func (s side) opposite() side {
	switch s {
	case first:
		return last
	case last:
		return first
	}
	return unknown
}

// An assignment is the current layout of every value of a graph.
type assignment struct {
	*Graph
	sides     []side
	roles     []Role  // of nodes; Breaking where the layouts of the values contradict the role
	consumers [][]int // of values; a node once per input that uses the value
	producers []int   // of values; -1 without producer
}

// assign determines the layout of every value. Layout-sensitive operators of ONNX are channels first; their layouts
// propagate through agnostic nodes and transposes. All other values count as channels first.
func (g *Graph) assign() *assignment {
	c := &assignment{Graph: g, sides: make([]side, len(g.Values)), roles: make([]Role, len(g.Nodes))}
	c.connect()
	// In this order: what sensitive operators require is certain, transposes of the model next to nothing known
	// show the layout that an exporter had in mind, and all else is channels first as ONNX has it.
	c.propagate(c.sensitiveValues())
	for _, n := range g.Nodes {
		if n.Role == ToLast {
			c.set(n.Inputs[0], first)
		} else if n.Role == ToFirst {
			c.set(n.Inputs[0], last)
		}
	}
	for v := range c.sides {
		c.set(v, first)
	}
	// After all layouts are final, as those of a node's values may have come from different sides.
	for i, n := range g.Nodes {
		if c.roles[i] = n.Role; !c.consistent(i) {
			c.roles[i] = Breaking
		}
	}
	return c
}

func (c *assignment) connect() {
	c.consumers, c.producers = make([][]int, len(c.Values)), make([]int, len(c.Values))
	for v := range c.producers {
		c.producers[v] = -1
	}
	for i, n := range c.Nodes {
		for _, v := range n.Inputs {
			c.consumers[v] = append(c.consumers[v], i)
		}
		for _, v := range n.Outputs {
			c.producers[v] = i
		}
	}
}

// sensitiveValues are the inputs and outputs of sensitive nodes. All of them are assigned before layouts propagate.
func (c *assignment) sensitiveValues() []int {
	var vs []int
	for _, n := range c.Nodes {
		if n.Role != Sensitive {
			continue
		}
		for v := range n.values() {
			if c.sides[v] == unknown {
				c.sides[v] = first
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// set assigns a layout to v, unless it has one, and propagates it.
func (c *assignment) set(v int, s side) {
	if c.sides[v] == unknown {
		c.sides[v] = s
		c.propagate([]int{v})
	}
}

// propagate assigns layouts that follow from those of the values in queue.
func (c *assignment) propagate(queue []int) {
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, n := range c.consumers[v] {
			queue = append(queue, c.follow(&c.Nodes[n], v)...)
		}
		if w := c.producers[v]; w >= 0 {
			queue = append(queue, c.follow(&c.Nodes[w], v)...)
		}
	}
}

// follow assigns the layouts of values of n that follow from that of v, and returns these values.
func (c *assignment) follow(n *Node, v int) []int {
	s := c.sides[v]
	var others []int
	switch n.Role {
	case Agnostic:
	case ToLast, ToFirst:
		if s = s.opposite(); !n.agree(v, s) {
			return nil
		}
	default:
		return nil
	}
	for u := range n.values() {
		if c.sides[u] == unknown {
			c.sides[u] = s
			others = append(others, u)
		}
	}
	return others
}

// agree reports whether the end of transpose n that is not v can have layout s.
func (n *Node) agree(v int, s side) bool {
	return (s == last) == ((n.Role == ToLast) == (v == n.Inputs[0]))
}

// consistent reports whether the values of node i have the layouts that its role requires.
func (c *assignment) consistent(i int) bool {
	n := &c.Nodes[i]
	if n.Role.moves() {
		in, out := c.sides[n.Inputs[0]], c.sides[n.Outputs[0]]
		return in != out && (in == first) == (n.Role == ToLast)
	}
	if n.Role != Agnostic {
		return true
	}
	common := unknown
	for v := range n.values() {
		if common == unknown {
			common = c.sides[v]
		}
		if c.sides[v] != common {
			return false
		}
	}
	return true
}
