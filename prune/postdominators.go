package prune

import (
	"cmp"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A trunk is a path of nodes, each the immediate post-dominator of the one before it: whatever a node contributes to
// the output of the graph passes through the next one.
type trunk []*ir.Node

// trunks are disjoint paths that cover the trees of post-dominators of a graph. Of the nodes before
// one, its path has one from which several branches lead to it, such as the begin of a residual connection, and not the
// end of a branch.
func (f *flow) trunks() []trunk {
	nodes, consumers := f.nodes, f.consumers()
	next := f.postDominators(consumers)
	height, previous := map[*ir.Node]int{}, map[*ir.Node]*ir.Node{}
	forks := func(n *ir.Node) int { return min(2, len(consumers[n])) }
	for _, n := range nodes {
		p := next[n]
		if p == nil {
			continue
		}
		height[p] = max(height[p], height[n]+1)
		if old := previous[p]; old == nil || cmp.Or(cmp.Compare(forks(n), forks(old)),
			cmp.Compare(height[n], height[old])) > 0 {
			previous[p] = n
		}
	}
	var out []trunk
	for _, n := range nodes {
		if previous[n] == nil {
			out = append(out, path(n, next, previous))
		}
	}
	return out
}

// path starts at n and ends before a node that a longer path reaches.
func path(n *ir.Node, next, previous map[*ir.Node]*ir.Node) trunk {
	t := trunk{n}
	for p := next[n]; p != nil && previous[p] == n; n, p = p, next[p] {
		t = append(t, p)
	}
	return t
}

// postDominators are the immediate post-dominators of nodes on the ways to the deepest output that each node reaches:
// results besides, such as the keys and values of a decoder's layers, do not count.
func (f *flow) postDominators(consumers map[*ir.Node][]*ir.Node) map[*ir.Node]*ir.Node {
	sinks := f.deepestOutputs()
	next, level := map[*ir.Node]*ir.Node{}, map[*ir.Node]int{}
	for _, n := range slices.Backward(f.nodes) {
		var common *ir.Node
		// The nodes are visited in reverse order: the post-dominators of consumers are known.
		for _, c := range consumers[n] {
			switch {
			case sinks[c] == nil || sinks[c] != sinks[n]:
			case common == nil:
				common = c
			default:
				common = ancestor(common, c, next, level)
			}
		}
		if common != nil {
			next[n], level[n] = common, level[common]+1
		}
	}
	return next
}

// ancestor is the lowest common ancestor of a and b in the tree of post-dominators, whose root is their output.
func ancestor(a, b *ir.Node, next map[*ir.Node]*ir.Node, level map[*ir.Node]int) *ir.Node {
	for a != b {
		if level[a] < level[b] {
			a, b = b, a
		}
		a = next[a]
	}
	return a
}

// consumers are the nodes that read a result of each, themselves or in a subgraph.
func (f *flow) consumers() map[*ir.Node][]*ir.Node {
	consumers := map[*ir.Node][]*ir.Node{}
	for _, n := range f.nodes {
		for _, v := range f.outer(n) {
			if p := v.Producer(); p != nil {
				consumers[p] = append(consumers[p], n)
			}
		}
	}
	return consumers
}

// deepestOutputs are the nodes that make the graph output of the longest path from each node; nil for dead nodes.
func (f *flow) deepestOutputs() map[*ir.Node]*ir.Node {
	depth, sinks := map[*ir.Node]int{}, map[*ir.Node]*ir.Node{}
	for _, n := range f.nodes {
		for _, v := range f.outer(n) {
			if p := v.Producer(); p != nil {
				depth[n] = max(depth[n], depth[p]+1)
			}
		}
	}
	for _, n := range slices.Backward(f.nodes) {
		if sinks[n] == nil && slices.ContainsFunc(n.Outputs, isGraphOutput) {
			sinks[n] = n
		}
		for _, v := range f.outer(n) {
			if p := v.Producer(); p != nil && sinks[n] != nil && (sinks[p] == nil || depth[sinks[p]] < depth[sinks[n]]) {
				sinks[p] = sinks[n]
			}
		}
	}
	return sinks
}

// isGraphOutput reports whether v is an output of its graph.
func isGraphOutput(v *ir.Value) bool {
	return v != nil && slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node == nil })
}
