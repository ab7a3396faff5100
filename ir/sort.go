package ir

import "errors"

// Sort puts g's nodes, and those of its subgraphs, into topological order. Nodes
// that are in order already stay where they are. It fails on a cycle.
func (g *Graph) Sort() error {
	for n := range g.Nodes() {
		for sub := range n.Subgraphs() {
			if err := sub.Sort(); err != nil {
				return err
			}
		}
	}
	nodes, err := g.Order()
	if err != nil {
		return err
	}
	g.first, g.last, g.Sorted = nil, nil, true
	for _, n := range nodes {
		g.Append(n)
	}
	return nil
}

// Order returns g's own nodes in the topological order that Sort would give them, and
// leaves g as it is. It fails on a cycle.
func (g *Graph) Order() ([]*Node, error) {
	s := sorter{state: map[*Node]int{}}
	for n := range g.Nodes() {
		if err := s.visit(g, n); err != nil {
			return nil, err
		}
	}
	return s.order, nil
}

const (
	entered = 1
	done    = 2
)

// ErrCycle is returned for graphs whose nodes form a cycle.
var ErrCycle = errors.New("its nodes form a cycle")

type sorter struct {
	state map[*Node]int
	order []*Node
}

// visit is iterative: chains of a hundred thousand nodes are real.
func (s *sorter) visit(g *Graph, root *Node) error {
	stack := []*Node{root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		switch s.state[n] {
		case done:
			stack = stack[:len(stack)-1]
		case entered:
			s.state[n] = done
			s.order = append(s.order, n)
			stack = stack[:len(stack)-1]
		default:
			s.state[n] = entered
			// Pushed in reverse, so that they are visited in input order.
			before := n.before(g)
			for i := len(before) - 1; i >= 0; i-- {
				switch s.state[before[i]] {
				case entered:
					return ErrCycle
				case 0:
					stack = append(stack, before[i])
				}
			}
		}
	}
	return nil
}

// before are the nodes of g that make what n, or a node in its subgraphs, reads.
func (n *Node) before(g *Graph) []*Node {
	var out []*Node
	for v := range n.reads {
		if v.producer != nil && v.graph == g {
			out = append(out, v.producer)
		}
	}
	return out
}
