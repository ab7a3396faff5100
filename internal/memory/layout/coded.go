package layout

// A side is the layout of a value.
type side uint8

const (
	unknown side = iota
	first
	last
)

// across is the side of a transpose's other end.
func (s side) across() side {
	switch s {
	case first:
		return last
	case last:
		return first
	}
	return unknown
}

// A coding is how a model has its values as it stands.
type coding struct {
	*Graph
	sides   []side
	roles   []Role  // of nodes; Breaking for those whose values contradict them
	readers [][]int // of values, each node once for each time that it reads
	writers []int   // of values, -1 for none
}

// coded finds the side of every value. Operators that know channels have them first; from
// there the sides follow through agnostic nodes and transposes. Where no such operator
// is near, layouts do not matter and values are called channels first.
func (g *Graph) coded() *coding {
	c := &coding{Graph: g, sides: make([]side, len(g.Values)), roles: make([]Role, len(g.Nodes))}
	c.connect()
	c.spread(c.known())
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
	for i, n := range g.Nodes {
		if c.roles[i] = n.Role; !c.agrees(i) {
			c.roles[i] = Breaking
		}
	}
	return c
}

func (c *coding) connect() {
	c.readers, c.writers = make([][]int, len(c.Values)), make([]int, len(c.Values))
	for v := range c.writers {
		c.writers[v] = -1
	}
	for i, n := range c.Nodes {
		for _, v := range n.Inputs {
			c.readers[v] = append(c.readers[v], i)
		}
		for _, v := range n.Outputs {
			c.writers[v] = i
		}
	}
}

// known are the values that operators which know channels read and write. All of them are
// settled before anything follows from one.
func (c *coding) known() []int {
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

// set gives v a side, unless it has one, and others what follows from it.
func (c *coding) set(v int, s side) {
	if c.sides[v] == unknown {
		c.sides[v] = s
		c.spread([]int{v})
	}
}

// spread lets the sides of these values decide others.
func (c *coding) spread(queue []int) {
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, n := range c.readers[v] {
			queue = append(queue, c.follow(&c.Nodes[n], v)...)
		}
		if w := c.writers[v]; w >= 0 {
			queue = append(queue, c.follow(&c.Nodes[w], v)...)
		}
	}
}

// follow sets those values of n that the side of v decides, and returns them.
func (c *coding) follow(n *Node, v int) []int {
	s := c.sides[v]
	var others []int
	switch n.Role {
	case Agnostic:
	case ToLast, ToFirst:
		if s = s.across(); !n.agree(v, s) {
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

// agree reports whether the end of transpose n that is not v can be on side s.
func (n *Node) agree(v int, s side) bool {
	return (s == last) == ((n.Role == ToLast) == (v == n.Inputs[0]))
}

// agrees reports whether the values of node i are on the sides that its role wants.
func (c *coding) agrees(i int) bool {
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
