package prune

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A repetition is two or more successive layers of one kind: each reads what the one before it makes, and makes a value
// of the size that it reads, as far as sizes are known, so that those after a removed one read what they read before.
type repetition []segment

// repetitions finds repeated layers in the graph of nodes, which are in topological order.
func repetitions(nodes []*ir.Node) []repetition {
	var all []repetition
	found := map[*ir.Node]bool{}
	f := newFlow(nodes)
	for _, t := range f.outermost() {
		if !f.repeats(t) || slices.ContainsFunc(t, func(n *ir.Node) bool { return found[n] }) {
			continue
		}
		list := slices.Concat(f.repetitions(f.segments(t, true)), f.repetitions(f.segments(t, false)))
		for _, r := range list {
			r.addNodes(found)
		}
		all = append(all, list...)
	}
	return disjoint(all)
}

// outermost are the trunks, with those that enclose others before these.
func (f *flow) outermost() []trunk {
	at := map[*ir.Node]int{}
	for i, n := range f.nodes {
		at[n] = i
	}
	list := f.trunks()
	span := func(t trunk) int { return at[t[len(t)-1]] - at[t[0]] }
	slices.SortStableFunc(list, func(a, b trunk) int { return span(b) - span(a) })
	return list
}

// repeats reports whether two nodes of t have the same operator, attributes and shapes of weights, without which
// nothing is repeated.
func (f *flow) repeats(t trunk) bool {
	seen := map[string]bool{}
	return slices.ContainsFunc(t, func(n *ir.Node) bool {
		text := n.Op.String() + attributes(n)
		for _, v := range n.Inputs() {
			if c := f.constant(v); c != nil {
				text += " " + c.text
			}
		}
		again := seen[text]
		seen[text] = true
		return again
	})
}

// disjoint are the repetitions without those that overlap one of more nodes.
func disjoint(all []repetition) []repetition {
	slices.SortStableFunc(all, func(a, b repetition) int { return b.size() - a.size() })
	var list []repetition
	used := map[*ir.Node]bool{}
	for _, r := range all {
		if !r.overlaps(used) {
			list = append(list, r)
			r.addNodes(used)
		}
	}
	return list
}

// addNodes adds the nodes of r to a set.
func (r repetition) addNodes(set map[*ir.Node]bool) {
	for _, layer := range r {
		for _, n := range layer.nodes {
			set[n] = true
		}
	}
}

func (r repetition) size() int {
	size := 0
	for _, layer := range r {
		size += len(layer.nodes)
	}
	return size
}

func (r repetition) overlaps(used map[*ir.Node]bool) bool {
	return slices.ContainsFunc(r, func(layer segment) bool {
		return slices.ContainsFunc(layer.nodes, func(n *ir.Node) bool { return used[n] })
	})
}

// maxPeriod is the largest number of segments in a layer.
const maxPeriod = 256

// repetitions finds layers of one kind among successive segments: a layer is as many segments as it takes until the
// kinds repeat.
func (f *flow) repetitions(segments []segment) []repetition {
	var out []repetition
	attends := make([]bool, len(segments))
	for i, s := range segments {
		attends[i] = slices.ContainsFunc(s.nodes, f.isAttention)
	}
	weighty := f.weighty(segments)
	for period := 1; period <= min(maxPeriod, len(segments)/2); period++ {
		counts := f.counts(segments, period)
		for from := 0; from < len(counts); {
			// No layer that begins in this period has weights.
			if counts[from] < 2 || weighty[from] == weighty[min(from+2*period, len(segments))] {
				from++
				continue
			}
			at, ok := layerStart(segments, attends, counts, from, period)
			if !ok || weighty[at] == weighty[at+period] {
				from++
				continue
			}
			if r := layers(segments[at:], period, counts[at]); r.hasNumbers() {
				out = append(out, r)
			}
			from = at + counts[at]*period
		}
	}
	return out
}

// counts are the numbers of times that period segments are repeated from each segment on, themselves included. No graph
// output is between them, and they read values of one size: layers of one kind that do also make values of that size.
func (f *flow) counts(segments []segment, period int) []int {
	list, same := make([]int, len(segments)), 0
	for i := len(segments) - 1; i >= 0; i-- {
		list[i] = 1
		if next := i + period; next >= len(segments) || segments[i].kind != segments[next].kind ||
			!f.sameSize(segments[i].before, segments[next].before) {
			same = 0
			// As many segments in a row as a period equal those of the next one: one repetition more.
		} else if same++; same >= period && !slices.ContainsFunc(segments[next].before.Outputs, isGraphOutput) {
			list[i] += list[next]
		}
	}
	return list
}

// layerStart is where layers begin, from on, ok is false where none does. A layer with attention begins with it,
// after a feed-forward network. Other layers begin with the segment before which most branches begin, as those of
// the residual, of those that are repeated as often.
func layerStart(segments []segment, attends []bool, counts []int, from, period int) (at int, ok bool) {
	attends = attends[from : from+period]
	whole := !slices.Contains(attends, true) || !slices.Contains(attends, false)
	for at = from; at < from+period && counts[at] > 1; at++ {
		if i := at - from; attends[i] && !attends[(i+period-1)%period] {
			return at, true
		}
	}
	at = from
	for i := from + 1; i < from+period && counts[i] == counts[from]; i++ {
		if branches(segments[i]) > branches(segments[at]) {
			at = i
		}
	}
	return at, whole
}

// isAttention reports whether n is the operator, or a product of two activations.
func (f *flow) isAttention(n *ir.Node) bool {
	op := operator.Of(n)
	return op.Attention || op.Product() && f.constant(n.Input(0)) == nil && f.constant(n.Input(1)) == nil
}

// branches is the number of uses of the results before a segment.
func branches(s segment) int {
	uses := 0
	for _, v := range s.before.Outputs {
		if v != nil {
			uses += len(v.Uses())
		}
	}
	return uses
}

// layers joins segments, period at a time.
func layers(segments []segment, period, count int) repetition {
	r := make(repetition, count)
	for i := range r {
		parts := segments[i*period : (i+1)*period]
		r[i] = segment{before: parts[0].before, last: parts[period-1].last, normalization: parts[0].normalization}
		for _, s := range parts {
			r[i].nodes, r[i].inputs = append(r[i].nodes, s.nodes...), append(r[i].inputs, s.inputs...)
		}
	}
	return r
}

// weighty are the numbers of segments before each one, and before the end, that have weights worth removing: a matrix
// or a filter.
func (f *flow) weighty(segments []segment) []int {
	list := make([]int, len(segments)+1)
	for i, s := range segments {
		list[i+1] = list[i]
		if slices.ContainsFunc(s.nodes, f.hasMatrix) {
			list[i+1]++
		}
	}
	return list
}

func (f *flow) hasMatrix(n *ir.Node) bool {
	return slices.ContainsFunc(n.Inputs(), func(v *ir.Value) bool {
		c := f.constant(v)
		return c != nil && c.matrix
	})
}
