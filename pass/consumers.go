package pass

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Consumers are the nodes that consume the constant v, also in subgraphs and through the operators that Trace follows,
// each once, in the order of uses.
func Consumers(v *ir.Value) []*ir.Node {
	var ns []*ir.Node
	var seen map[*ir.Node]bool // of many consumers
	for _, l := range LeafUses(v) {
		if l.Node == nil || seen == nil && slices.Contains(ns, l.Node) || seen[l.Node] {
			continue
		}
		ns = append(ns, l.Node)
		if len(ns) == manyConsumers {
			seen = map[*ir.Node]bool{}
			for _, n := range ns {
				seen[n] = true
			}
		} else if seen != nil {
			seen[l.Node] = true
		}
	}
	return ns
}

// manyConsumers is the number of consumers from which a map finds one faster than a scan; nearly all constants have
// fewer.
const manyConsumers = 32

// LeafUses are the uses of v, with those of its views and casts in place of the nodes that Trace follows. A use without
// node is a graph output.
func LeafUses(v *ir.Value) []ir.Use {
	var ls []ir.Use
	// A stack of lists in place of recursion, whose depth would be that of the longest chain of nodes: a million are
	// hundreds of megabytes of stack, and beyond 1 GB Go ends the process. The order is that of a recursion.
	for rest := [][]ir.Use{v.Uses()}; len(rest) > 0; {
		last := len(rest) - 1
		if len(rest[last]) == 0 {
			rest = rest[:last]
			continue
		}
		u := rest[last][0]
		rest[last] = rest[last][1:]
		// Only the first input goes through: a constant that is the shape of a Reshape is not what the Reshape returns.
		if u.Node == nil || u.Index > 0 || chain[u.Node.Op.Type] == nil || !ir.DefaultDomain(u.Node.Op.Domain) {
			ls = append(ls, u)
			continue
		}
		rest = append(rest, u.Node.Outputs[0].Uses())
	}
	return ls
}
