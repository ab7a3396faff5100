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
	own    []int64 // the cost of each node
	needs  [][]int // resources common to nodes of a stage; per node, without repetition
	things []int64 // cost of each resource, counted once per stage that needs it
	cross  []int64 // bytes that cross the cut before each node and after the last; negative for excluded cuts
	makes  []int   // last node before each cut whose outputs are needed after it, or are model outputs
	before [][]int // for each of needs, the previous node that needs it; -1 for none
}

// partition cuts the line into n stages and returns their first nodes, followed by the length of the
// line. It minimizes the cost of the largest stage, then the bytes across cuts; a value that crosses
// several cuts counts at each. Every stage produces something that is needed after it.
//
// The bytes are minimized by dynamic programming over the ends of stages, in time proportional to the
// number of nodes times the nodes per stage: the cost of a stage is not a sum, as nodes share weights.
func (l *line) partition(n int) ([]int, error) {
	l.relate()
	if len(l.own) == 0 {
		return nil, errors.New("no node depends on the inputs: the model cannot be partitioned")
	}
	if most := l.most(); n < 1 || n > most {
		return nil, fmt.Errorf("%d stages: the graph can be partitioned into 1 to %d", n, most)
	}
	across := func(soFar, _, cross int64) int64 { return soFar + cross }
	if total, starts := l.search(n, l.least(n), across); total != unreached {
		return starts, nil
	}
	// Stages without needed outputs prevent a partition.
	largest, _ := l.search(n, unreached, func(soFar, stage, _ int64) int64 { return max(soFar, stage) })
	if largest == unreached {
		return nil, fmt.Errorf("%d stages: some would have no outputs that later stages need; use fewer", n)
	}
	_, starts := l.search(n, largest, across)
	return starts, nil
}

// least is the minimum limit on the cost of a stage for which n stages suffice, filled greedily. It is a
// lower bound for any n stages.
func (l *line) least(n int) int64 {
	high := int64(0)
	for _, cost := range slices.Concat(l.own, l.things) {
		high += cost
	}
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

// search finds n stages within the cost limit of minimum total bytes; more is the total with
// one more stage and the bytes across the cut after it.
func (l *line) search(n int, limit int64, more func(soFar, stage, cross int64) int64) (int64, []int) {
	nodes := len(l.own)
	best, from := newTable(nodes+1, n+1, int64(unreached)), newTable(nodes+1, n+1, 0)
	best[0][0] = 0
	for first := range nodes {
		if l.cross[first] < 0 {
			continue
		}
		l.costs(first, limit, func(end int, cost int64) {
			if l.cross[end] < 0 || l.makes[end] < first {
				return
			}
			for k, soFar := range best[first][:n] {
				if soFar == unreached {
					continue
				}
				if total := more(soFar, cost, l.cross[end]); total < best[end][k+1] {
					best[end][k+1], from[end][k+1] = total, first
				}
			}
		})
	}
	starts := make([]int, n+1)
	starts[n] = nodes
	for k := n; k > 0; k-- {
		starts[k-1] = from[starts[k]][k]
	}
	return best[nodes][n], starts
}

func newTable[T any](rows, columns int, value T) [][]T {
	t := make([][]T, rows)
	for i := range t {
		t[i] = slices.Repeat([]T{value}, columns)
	}
	return t
}

// costs visits the ends of all stages that begin with node first within the cost limit.
func (l *line) costs(first int, limit int64, visit func(end int, cost int64)) {
	cost := int64(0)
	for i := first; i < len(l.own); i++ {
		cost += l.own[i]
		for k, t := range l.needs[i] {
			if l.before[i][k] < first {
				cost += l.things[t]
			}
		}
		if cost > limit {
			return
		}
		visit(i+1, cost)
	}
}

// relate records for each node and resource the previous node that needs it.
func (l *line) relate() {
	last := slices.Repeat([]int{-1}, len(l.things))
	l.before = make([][]int, len(l.needs))
	for i, needs := range l.needs {
		for _, t := range needs {
			l.before[i] = append(l.before[i], last[t])
			last[t] = i
		}
	}
}
