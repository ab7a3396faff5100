package prune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A repetition is the values between successive blocks of one kind: block i reads value i and makes value i+1.
type repetition []*ir.Value

// repetitions finds runs of two or more blocks. Blocks are of one kind if their nodes have the same operators, attributes and shapes of
// weights in the same order, exactly one value connects one to the next, and their images keep their size.
func repetitions(nodes []*ir.Node) []repetition {
	var out []repetition
	for _, g := range crossings(nodes) {
		out = append(out, g.runs(nodes)...)
	}
	// The run that covers most comes first; those that overlap it are not runs of their own.
	slices.SortStableFunc(out, func(a, b repetition) int { return b.cover(nodes) - a.cover(nodes) })
	var separate []repetition
	used := map[*ir.Node]bool{}
	for _, r := range out {
		if inside := r.nodes(nodes); !slices.ContainsFunc(inside, func(n *ir.Node) bool { return used[n] }) {
			separate = append(separate, r)
			for _, n := range inside {
				used[n] = true
			}
		}
	}
	return separate
}

// A place is before the node of number at; value crosses it.
type place struct {
	at    int
	value *ir.Value
}

// A passage is places that the same values cross, but for one.
type passage []place

// crossings are the groups of places, in order.
func crossings(nodes []*ir.Node) []passage {
	last := map[*ir.Value]int{}
	for i, n := range nodes {
		for _, v := range outer(n) {
			last[v] = i
		}
	}
	for _, n := range nodes {
		for _, v := range n.Outputs {
			if v != nil && slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node == nil }) {
				last[v] = len(nodes)
			}
		}
	}
	groups := map[string]passage{}
	var keys []string
	var live []*ir.Value
	for i := range len(nodes) + 1 {
		live = slices.DeleteFunc(live, func(v *ir.Value) bool { return last[v] < i })
		for k := range live {
			if len(live) > maxLive {
				break
			}
			key := joined(slices.Concat(live[:k], live[k+1:]))
			if groups[key] == nil {
				keys = append(keys, key)
			}
			groups[key] = append(groups[key], place{i, live[k]})
		}
		if i == len(nodes) {
			break
		}
		for _, v := range nodes[i].Outputs {
			if v != nil && last[v] > i {
				live = append(live, v)
			}
		}
	}
	var out []passage
	for _, k := range keys {
		out = append(out, groups[k])
	}
	return out
}

// maxLive bounds how many values may cross a place: one from block to block, and masks and positions that all read.
const maxLive = 12

// outer are the values that a node and the graphs inside it read.
func outer(n *ir.Node) []*ir.Value {
	vs := slices.Clone(n.Inputs())
	for g := range n.Subgraphs() {
		for inner := range g.Nodes() {
			vs = append(vs, outer(inner)...)
		}
		vs = append(vs, g.Outputs...)
	}
	return slices.DeleteFunc(vs, func(v *ir.Value) bool { return v == nil || v.Const != nil })
}

func joined(vs []*ir.Value) string {
	var b strings.Builder
	for _, v := range vs {
		fmt.Fprintf(&b, "%p ", v)
	}
	return b.String()
}

// runs finds blocks of one kind between the places of g: a block spans as many places as it takes until the kinds repeat.
func (g passage) runs(nodes []*ir.Node) []repetition {
	kinds := make([]string, max(0, len(g)-1))
	for i := range kinds {
		kinds[i] = kind(nodes[g[i].at:g[i+1].at], g[i].value)
	}
	var out []repetition
	for period := 1; period <= len(kinds)/2; period++ {
		for from := 0; from+2*period <= len(kinds); {
			n := 1
			for from+(n+1)*period <= len(kinds) && slices.Equal(kinds[from:from+period], kinds[from+n*period:from+(n+1)*period]) {
				n++
			}
			if n < 2 || !strings.Contains(kinds[from], " in") || !weighty(nodes[g[from].at:g[from+period].at]) {
				from++
				continue
			}
			var r repetition
			for b := range n + 1 {
				r = append(r, g[from+b*period].value)
			}
			out = append(out, r)
			from += n * period
		}
	}
	return out
}

// weighty reports whether a block has weights worth leaving out: a matrix or a filter, at least.
func weighty(nodes []*ir.Node) bool {
	return slices.ContainsFunc(nodes, func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool { return v != nil && v.Const != nil && len(v.Const.Shape) > 1 })
	})
}

// kind identifies parts of a graph: operators, attributes, shapes of constants, and whether what enters is read. Parts
// that make images smaller are of no kind.
func kind(nodes []*ir.Node, enters *ir.Value) string {
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString(n.Op.String())
		for _, a := range n.Attrs {
			fmt.Fprintf(&b, " %s=%d,%g,%q,%v,%v", a.Name, a.I, a.F, a.S, a.Ints, a.Floats)
			if a.Name == "strides" && slices.ContainsFunc(a.Ints, func(s int64) bool { return s != 1 }) || a.Graph != nil {
				fmt.Fprintf(&b, " %p", n)
			}
		}
		for _, v := range n.Inputs() {
			switch {
			case v == nil:
				b.WriteString(" -")
			case v.Const != nil:
				fmt.Fprintf(&b, " %s%v", v.Const.DType, v.Const.Shape)
			case v == enters:
				b.WriteString(" in")
			default:
				b.WriteString(" x")
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}

// nodes are those between what enters the first block and what leaves the last.
func (r repetition) nodes(all []*ir.Node) []*ir.Node {
	first, last := slices.Index(all, r[0].Producer()), slices.Index(all, r[len(r)-1].Producer())
	return all[first+1 : last+1]
}

func (r repetition) cover(all []*ir.Node) int { return len(r.nodes(all)) }
