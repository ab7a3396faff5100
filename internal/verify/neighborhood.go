package verify

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// maxNeighbors is the number of nodes around a layer that a result lists.
const maxNeighbors = 10

// neighbors lists n and the nodes nearest to it, by the number of edges: one half of them before n and one half after
// it, where there are as many. They are in the order of execution, n with the given one of its values.
func (s *LayerComparison) neighbors(n *ir.Node, value string, by map[string]*sums) []verification.Neighbor {
	position := make(map[*ir.Node]int, len(s.nodes))
	for i, m := range s.nodes {
		position[m] = i
	}
	before, after := nearest(n, position, producers), nearest(n, position, consumers)
	// A side with fewer nodes than its half leaves its places to the other one.
	first := min(len(before), max(maxNeighbors/2, maxNeighbors-len(after)))
	nodes := append(before[:first], after[:min(len(after), maxNeighbors-first)]...)
	nodes = append(nodes, n)
	slices.SortFunc(nodes, func(a, b *ir.Node) int { return position[a] - position[b] })

	list := make([]verification.Neighbor, len(nodes))
	for i, m := range nodes {
		x := &list[i]
		*x = verification.Neighbor{Node: m.Label(), Op: m.Op.String(), Module: m.Module, Inputs: []int{}}
		for j, other := range nodes[:i] {
			if slices.Contains(producers(m), other) {
				x.Inputs = append(x.Inputs, j)
			}
		}
		for _, v := range m.Outputs {
			if v == nil {
				continue
			}
			if x.Value == "" {
				x.Value = v.Name
			}
			if sums := by[v.Name]; sums != nil && (x.Errors == nil || m == n && v.Name == value) {
				e := sums.errors()
				x.Value, x.Errors = v.Name, &e
			}
		}
	}
	return list
}

// nearest are the first nodes that next reaches from n, breadth first, among those that have a position.
func nearest(n *ir.Node, position map[*ir.Node]int, next func(*ir.Node) []*ir.Node) []*ir.Node {
	seen := map[*ir.Node]bool{n: true}
	found := []*ir.Node{n}
	for i := 0; i < len(found) && len(found) <= maxNeighbors; i++ {
		for _, m := range next(found[i]) {
			if _, listed := position[m]; listed && !seen[m] {
				seen[m] = true
				found = append(found, m)
			}
		}
	}
	return found[1:min(len(found), maxNeighbors+1)]
}

// producers are the nodes of n's inputs.
func producers(n *ir.Node) []*ir.Node {
	var nodes []*ir.Node
	for _, v := range n.Inputs() {
		if v != nil && v.Producer() != nil {
			nodes = append(nodes, v.Producer())
		}
	}
	return nodes
}

// consumers are the nodes that use n's outputs.
func consumers(n *ir.Node) []*ir.Node {
	var nodes []*ir.Node
	for _, v := range n.Outputs {
		if v == nil {
			continue
		}
		for _, u := range v.Uses() {
			if u.Node != nil {
				nodes = append(nodes, u.Node)
			}
		}
	}
	return nodes
}
