package memory

import (
	"cmp"
	"slices"
)

// An occupancy is the used bytes of the arena at each step, as a segment tree over steps: node 1 covers all of them,
// nodes 2n and 2n+1 the halves of node n. It stores the union of blocks as spans, which are few in a well packed arena.
type occupancy struct {
	leaf         int      // the node of step 0
	across       [][]span // used at each of the node's steps, by blocks that no higher node covers
	born         [][]span // of blocks whose first step is one of the node's
	work         int      // spans visited
	lists        [][]span // of a query
	found, spare []span
}

// A span is bytes from start up to end.
type span struct{ start, end int64 }

func newOccupancy(steps int) *occupancy {
	leaf := 1
	for leaf < steps {
		leaf *= 2
	}
	return &occupancy{leaf: leaf, across: make([][]span, 2*leaf), born: make([][]span, 2*leaf)}
}

// fit returns the offset of the smallest sufficient gap that is free from step first to step last; the lowest of equal
// gaps, and the end of the arena if there is none.
func (o *occupancy) fit(first, last int, bytes int64) int64 {
	var free, best, least int64
	for _, s := range o.taken(first, last) {
		// Best fit: the smallest gap leaves the larger ones to larger blocks.
		if gap := s.start - free; gap >= bytes && (least == 0 || gap < least) {
			best, least = free, gap
		}
		free = max(free, s.end)
	}
	if least == 0 {
		return free
	}
	return best
}

// taken returns the spans used at some step from first to last: by blocks that are live at first, and by those that
// begin later. The result is valid until the next call. Short lists are joined before long ones, so that a long one is
// copied once.
func (o *occupancy) taken(first, last int) []span {
	o.lists = o.lists[:0]
	// From the leaf of the first step to the root: nodes that cover this step.
	for n := o.leaf + first; n > 0; n /= 2 {
		o.lists = append(o.lists, o.across[n])
	}
	for n := range o.parts(first+1, last) {
		o.lists = append(o.lists, o.born[n])
	}
	slices.SortFunc(o.lists, func(a, b []span) int { return cmp.Compare(len(a), len(b)) })
	o.found = o.found[:0]
	for _, l := range o.lists {
		o.work += len(o.found) + len(l)
		o.found, o.spare = union(o.spare[:0], o.found, l), o.found
	}
	return o.found
}

// union appends the union of a and b to dst.
func union(dst, a, b []span) []span {
	for len(a) > 0 || len(b) > 0 {
		// The list whose next span begins first is a.
		if len(a) == 0 || len(b) > 0 && b[0].start < a[0].start {
			a, b = b, a
		}
		s := a[0]
		a = a[1:]
		if n := len(dst); n > 0 && s.start <= dst[n-1].end {
			dst[n-1].end = max(dst[n-1].end, s.end)
			continue
		}
		dst = append(dst, s)
	}
	return dst
}

// occupy marks s as taken from step first to step last.
func (o *occupancy) occupy(first, last int, s span) {
	for n := range o.parts(first, last) {
		o.across[n] = insert(o.across[n], s)
	}
	for n := o.leaf + first; n > 0; n /= 2 {
		o.born[n] = insert(o.born[n], s)
	}
}

// parts iterates over the fewest nodes that together cover the steps from first to last, none if last is before first.
func (o *occupancy) parts(first, last int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for a, b := o.leaf+first, o.leaf+last+1; a < b; a, b = a/2, b/2 {
			if a%2 == 1 {
				if !yield(a) {
					return
				}
				a++
			}
			if b%2 == 1 {
				b--
				if !yield(b) {
					return
				}
			}
		}
	}
}

// insert adds s to spans, which are ordered and disjoint.
func insert(spans []span, s span) []span {
	// The first span that ends at s.start or later: spans that touch are joined, too, which keeps the lists short.
	from, _ := slices.BinarySearchFunc(spans, s.start,
		func(x span, start int64) int { return cmp.Compare(x.end, start) })
	to := from
	for to < len(spans) && spans[to].start <= s.end {
		s.start, s.end = min(s.start, spans[to].start), max(s.end, spans[to].end)
		to++
	}
	return slices.Replace(spans, from, to, s)
}
