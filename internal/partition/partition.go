package partition

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A line is a sequence of nodes as costs. It may be cut between any two nodes, except at
// excluded cuts.
type line struct {
	own       []int64 // the cost of each node
	needs     [][]int // resources common to nodes of a stage; per node, without repetition
	resources []int64 // cost of each resource, counted once per stage that needs it
	cross     []int64 // bytes that cross the cut before each node and after the last; negative for excluded cuts
	producers []int   // last node before each cut whose outputs are needed after it, or are model outputs
	before    [][]int // for each of needs, the previous node that needs it; -1 for none
	after     [][]int // for each of needs, the next node that needs it; their number for none
}

// partition cuts the line into n stages and returns their first nodes, followed by the length of the
// line. It minimizes the cost of the largest stage, then the bytes across cuts; a value that crosses
// several cuts counts at each. Every stage produces something that is needed after it.
//
// The bytes are minimized by dynamic programming over the ends of stages, in time proportional to n times the number of
// nodes and its logarithm: as nodes share weights, the cost of a stage is not a sum, but it does not shrink with the
// stage.
func (l *line) partition(n int) ([]int, error) {
	l.relate()
	if len(l.own) == 0 {
		return nil, errors.New("no node depends on the inputs: the model cannot be partitioned")
	}
	if most := l.most(); n < 1 || n > most {
		return nil, fmt.Errorf("%d stages: the graph can be partitioned into 1 to %d", n, most)
	}
	// Binary search without dynamic programming finds the limit in nearly all cases; only stages that produce
	// nothing that is needed afterwards can make it too low.
	limit := l.least(n)
	if starts := l.search(n, limit); starts != nil {
		return starts, nil
	}
	// Stages without needed outputs prevent a partition: the limit is the lowest one with which there is one.
	high := l.total()
	if l.search(n, high) == nil {
		return nil, fmt.Errorf("%d stages: some would have no outputs that later stages need; use fewer", n)
	}
	for low := limit + 1; low < high; {
		if limit := low + (high-low)/2; l.search(n, limit) != nil {
			high = limit
		} else {
			low = limit + 1
		}
	}
	return l.search(n, high), nil
}

// total is a cost that no stage exceeds.
func (l *line) total() (cost int64) {
	for _, c := range slices.Concat(l.own, l.resources) {
		cost += c
	}
	return cost
}

// least is the minimum limit on the cost of a stage for which n stages suffice, filled greedily. It is a
// lower bound for any n stages.
func (l *line) least(n int) int64 {
	high := l.total()
	for low := int64(0); low < high; {
		limit := low + (high-low)/2
		if l.needed(limit, n) <= n {
			high = limit
		} else {
			low = limit + 1
		}
	}
	return high
}

// needed is the number of stages within the limit; more than n if there is no partition or it needs too
// many.
func (l *line) needed(limit int64, n int) int {
	count := 0
	for first := 0; first < len(l.own) && count <= n; count++ {
		furthest := first
		// Greedy: the cost of a stage does not shrink as it grows, so that the longest stage leaves the least to the
		// others.
		l.costs(first, limit, func(end int, _ int64) {
			if l.cross[end] >= 0 {
				furthest = end
			}
		})
		if furthest == first {
			return n + 1
		}
		first = furthest
	}
	return count
}

// most is the maximum number of stages.
func (l *line) most() int {
	n := 1
	for c := 1; c < len(l.own); c++ {
		if l.cross[c] >= 0 {
			n++
		}
	}
	return n
}

const unreached = math.MaxInt64

// search finds n stages within the cost limit of minimum total bytes, nil if there are none.
func (l *line) search(n int, limit int64) []int {
	nodes := len(l.own)
	furthest := l.furthest(limit)
	best, from := slices.Repeat([]int64{unreached}, nodes+1), make([][]int32, n)
	// best[end] is the minimum of bytes over the first stages, up to k, that end before node end.
	best[0] = 0
	for k := range n {
		next := slices.Repeat([]int64{unreached}, nodes+1)
		from[k] = make([]int32, nodes+1)
		before := newMinTree(best)
		for end := 1; end <= nodes; end++ {
			if l.cross[end] < 0 {
				continue
			}
			// The stage [first, end) is within the limit from furthest[end] on, and contains the last node with a needed
			// output up to makes[end]. minTree finds the best start in this range.
			if first := before.least(furthest[end], min(end, l.producers[end]+1)); first >= 0 && best[first] != unreached {
				next[end], from[k][end] = best[first]+l.cross[end], int32(first)
			}
		}
		best = next
	}
	if best[nodes] == unreached {
		return nil
	}
	starts := make([]int, n+1)
	starts[n] = nodes
	for k := n; k > 0; k-- {
		starts[k-1] = int(from[k-1][starts[k]])
	}
	return starts
}

// furthest is the first node of the longest stage before each end within the cost limit.
func (l *line) furthest(limit int64) []int {
	list := make([]int, len(l.own)+1)
	first, cost := 0, int64(0)
	for i := range l.own {
		cost += l.own[i]
		for k, t := range l.needs[i] {
			if l.before[i][k] < first {
				cost += l.resources[t]
			}
		}
		// Two pointers, as neither end moves back. A resource leaves with its last consumer before i.
		for ; cost > limit; first++ {
			cost -= l.own[first]
			for k, t := range l.needs[first] {
				if l.after[first][k] > i {
					cost -= l.resources[t]
				}
			}
		}
		list[i+1] = first
	}
	return list
}

// costs visits the ends of all stages that begin with node first within the cost limit.
func (l *line) costs(first int, limit int64, visit func(end int, cost int64)) {
	cost := int64(0)
	for i := first; i < len(l.own); i++ {
		cost += l.own[i]
		for k, t := range l.needs[i] {
			if l.before[i][k] < first {
				cost += l.resources[t]
			}
		}
		if cost > limit {
			return
		}
		visit(i+1, cost)
	}
}

// relate records for each node and resource the previous and the next node that needs it.
func (l *line) relate() {
	last := slices.Repeat([]int{-1}, len(l.resources))
	l.before = make([][]int, len(l.needs))
	for i, needs := range l.needs {
		for _, t := range needs {
			l.before[i] = append(l.before[i], last[t])
			last[t] = i
		}
	}
	next := slices.Repeat([]int{len(l.needs)}, len(l.resources))
	l.after = make([][]int, len(l.needs))
	for i, needs := range slices.Backward(l.needs) {
		for _, t := range needs {
			l.after[i] = append(l.after[i], next[t])
			next[t] = i
		}
	}
}
