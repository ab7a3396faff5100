package opset

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A System is the shapes of the inputs of a graph as a function of a number of free sizes.
type System struct {
	Graph *ir.Graph
	// Shapes are those of the inputs for free sizes.
	Shapes func(sizes []int64) map[*ir.Value][]int64
	// Vary are the sizes that may be changed, those to be tried first first; the sizes of one list are changed
	// together.
	Vary [][]int

	nodes []*ir.Node
}

// Limits of Solve.
const (
	largestSize = 1 << 20
	maxChanges  = 64
)

// Solve changes sizes, where the nodes of the graph cannot run with them, so that they can as far as this can be
// inferred: inner sizes of products, windows that fit, features that trees read, shapes that are reshaped, broadcast or
// concatenated, caches of attention. It returns the sizes as they are where all requirements hold, or where no change
// meets them.
func (s *System) Solve(sizes []int64) []int64 {
	s.nodes = executed(s.Graph)
	sizes = slices.Clone(sizes)
	skip := map[place]bool{} // requirements that cannot be met
	// One requirement at a time, the first in the order of execution: those after it depend on shapes that it
	// makes possible.
	for range maxChanges {
		at, ok := s.violated(sizes, skip)
		if !ok {
			break
		}
		if better := s.repaired(sizes, at, skip); better != nil {
			sizes = better
		} else {
			skip[at] = true
		}
	}
	return sizes
}

// A place is the position of a requirement: of a node, and among those of the node.
type place struct{ node, index int }

func (p place) before(q place) bool { return p.node < q.node || p.node == q.node && p.index < q.index }

// executed are the nodes of g in topological order, those of the branches of If and of the body of Scan and Loop after
// it.
func executed(g *ir.Graph) []*ir.Node {
	nodes, err := g.Order()
	if err != nil {
		return nil
	}
	var all []*ir.Node
	for _, n := range nodes {
		all = append(all, n)
		if n.Op.Is("If") || n.Op.Is("Scan") || n.Op.Is("Loop") {
			for sub := range n.Subgraphs() {
				all = append(all, executed(sub)...)
			}
		}
	}
	return all
}

// violated is the first requirement that does not hold, false if all hold.
func (s *System) violated(sizes []int64, skip map[place]bool) (place, bool) {
	f := s.infer(sizes)
	for i, n := range s.nodes {
		for k, r := range f.requirements(n) {
			if at := (place{i, k}); !r.holds() && !skip[at] {
				return at, true
			}
		}
	}
	return place{}, false
}

func (s *System) infer(sizes []int64) *inference {
	return ShapesFor(s.Shapes(sizes)).inference
}

// repaired changes sizes so that the requirement at a place, and those before it, hold; nil if it finds no such change.
func (s *System) repaired(sizes []int64, at place, skip map[place]bool) []int64 {
	for _, vary := range s.Vary {
		a := &attempt{s, sizes, vary, at}
		for _, x := range a.candidates() {
			changed := a.with(x)
			// Only forward: a change that breaks an earlier requirement would be undone by the next, without end.
			if next, ok := s.violated(changed, skip); !ok || at.before(next) {
				return changed
			}
		}
	}
	return nil
}

// An attempt is one requirement as a function of one size.
type attempt struct {
	system *System
	sizes  []int64
	vary   []int
	at     place
}

func (a *attempt) with(x int64) []int64 {
	sizes := slices.Clone(a.sizes)
	for _, i := range a.vary {
		sizes[i] = x
	}
	return sizes
}

// gap is the size less the required one, false if one of them is unknown.
func (a *attempt) gap(x int64) (int64, bool) {
	list := a.system.infer(a.with(x)).requirements(a.system.nodes[a.at.node])
	if a.at.index >= len(list) {
		return 0, false
	}
	r := list[a.at.index]
	return r.size.N - r.want.N, r.size.Known() && r.want.Known()
}

// usual are sizes that are tried where a requirement does not determine one.
var usual = []int64{1, 2, 3, 4, 8, 16, 32, 64, 96, 128, 224, 256, 320, 512}

// candidates are sizes to try: the least one with which the gap is closed, and usual ones. There are none if the gap
// does not depend on the size.
func (a *attempt) candidates() []int64 {
	now := a.sizes[a.vary[0]]
	before, ok := a.gap(now)
	// Two probes: a requirement that does not change at either is assumed not to depend on the size.
	if ok && a.constant(before, 2*now+1) && a.constant(before, largestSize) {
		return nil
	}
	var list []int64
	if ok {
		if x := a.closingSize(before); x > 0 {
			list = append(list, x)
		}
	}
	return append(list, usual...)
}

// constant reports whether the gap with size x is the given one. A number of frames is 0 up to the length of a frame,
// so that two sizes nearby do not show whether it depends on them.
func (a *attempt) constant(gap, x int64) bool {
	after, ok := a.gap(x)
	return ok && after == gap
}

// closingSize is the least size at which the gap does not have the sign that it has now, 0 if there is none: sizes of
// values are monotone in those of the inputs.
func (a *attempt) closingSize(now int64) int64 {
	closed := func(x int64) bool {
		gap, ok := a.gap(x)
		return ok && (gap == 0 || (gap > 0) != (now > 0))
	}
	low, high := int64(0), a.sizes[a.vary[0]]
	if shrinks := closed(1); shrinks {
		// The gap closes below: find the largest such size.
		low = 1
		for low+1 < high {
			if mid := (low + high) / 2; closed(mid) {
				low = mid
			} else {
				high = mid
			}
		}
		return low
	}
	low = high
	for high = max(1, high); !closed(high); high *= 2 {
		if low = high; high > largestSize {
			return 0
		}
	}
	for low+1 < high {
		if mid := (low + high) / 2; closed(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
