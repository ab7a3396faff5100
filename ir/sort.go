package ir

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

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
	count := g.NodeCount()
	s := sorter{entered: map[*Node]bool{}, done: map[*Node]struct{}{}, order: make([]*Node, 0, count)}
	for n := range g.Nodes() {
		if err := s.visit(g, n); err != nil {
			return nil, err
		}
	}
	return s.order, nil
}

// Live returns the nodes of g that its outputs depend on, subgraphs of others included, in topological order. It fails
// on a cycle.
func (g *Graph) Live() ([]*Node, error) {
	nodes, err := g.Order()
	if err != nil {
		return nil, err
	}
	read := map[*Value]bool{}
	for _, v := range g.Outputs {
		read[v] = true
	}
	live := nodes[len(nodes):]
	// Backwards: all consumers of a node, also those in subgraphs of others, are known before it.
	for _, n := range slices.Backward(nodes) {
		if slices.ContainsFunc(n.Outputs, func(v *Value) bool { return v != nil && read[v] }) {
			live = append(live, n)
			for v := range n.reads {
				read[v] = true
			}
		}
	}
	slices.Reverse(live)
	return live, nil
}

// ErrCycle is returned for graphs whose nodes form a cycle.
var ErrCycle = errors.New("its nodes form a cycle")

type sorter struct {
	entered map[*Node]bool // and not done: few, in a graph that is in order
	done    map[*Node]struct{}
	order   []*Node
	stack   []*Node // the entered ones among them are the path to the last
}

// isRead reports whether an output of n has uses.
func (n *Node) isRead() bool {
	return slices.ContainsFunc(n.Outputs, func(v *Value) bool { return v != nil && len(v.uses) > 0 })
}

func (s *sorter) isDone(n *Node) bool {
	_, ok := s.done[n]
	return ok
}

// visit is iterative: chains of a hundred thousand nodes are real.
func (s *sorter) visit(g *Graph, root *Node) error {
	s.stack = append(s.stack, root)
	for len(s.stack) > 0 {
		n := s.stack[len(s.stack)-1]
		switch {
		case s.isDone(n):
			s.stack = s.stack[:len(s.stack)-1]
		case s.entered[n]:
			delete(s.entered, n)
			// Others are visited once, in their own turn: nothing leads to them.
			if n.isRead() {
				s.done[n] = struct{}{}
			}
			s.order = append(s.order, n)
			s.stack = s.stack[:len(s.stack)-1]
		default:
			s.entered[n] = true
			if err := s.push(n.before(g)); err != nil {
				return err
			}
		}
	}
	return nil
}

// push adds the producers of the last node's inputs in reverse, so that they are visited in input order.
func (s *sorter) push(before []*Node) error {
	path := s.stack
	for _, n := range slices.Backward(before) {
		switch {
		case s.entered[n]:
			return fmt.Errorf("%w: %s", ErrCycle, s.cycle(path, n))
		case !s.isDone(n):
			s.stack = append(s.stack, n)
		}
	}
	return nil
}

// maxCycle is the number of nodes of a cycle that an error lists.
const maxCycle = 8

// cycle lists the nodes of the cycle that the edge from n to the end of path closes, producers before consumers.
func (s *sorter) cycle(path []*Node, n *Node) string {
	names := []string{strconv.Quote(n.Label())}
	listed := map[*Node]bool{}
	more := 0
	for _, p := range slices.Backward(path) {
		if !s.entered[p] || listed[p] {
			continue // a producer that waits for its turn, or was entered from a later one
		}
		listed[p] = true
		if p == n {
			break
		}
		if len(names) == maxCycle {
			more++
			continue
		}
		names = append(names, strconv.Quote(p.Label()))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(append(names, names[0]), " → ")
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
