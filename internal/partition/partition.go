package partition

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A line is nodes one behind another, as costs. Between any two of them it may be cut, unless
// that is ruled out.
type line struct {
	own    []int64 // the cost of each node
	needs  [][]int // things that nodes share within a stage; each node's, without repetition
	things []int64 // the cost of each such thing, once in each stage that needs it
	cross  []int64 // the bytes that cross the cut in front of each node and behind the last; negative where there must be none
	makes  []int   // the last node in front of each cut whose results are needed behind it, or by the caller
	before [][]int // for each of needs, the node in front that needs it too; -1 for none
}

// partition cuts the line into n stages and returns where they begin, with the end of the line
// behind them. The largest stage is as small as it can be; of all such partitions it is one
// with the fewest bytes across its cuts, a value that crosses several of them counting at each. Every
// stage makes something that is needed behind it.
//
// The fewest bytes are sought by dynamic programming over where a stage ends, in steps that grow as
// the nodes times those of a stage: a stage's cost is no sum, as nodes share weights.
func (l *line) partition(n int) ([]int, error) {
	l.relate()
	if len(l.own) == 0 {
		return nil, errors.New("no node depends on what a run is given: there is nothing to cut")
	}
	if most := l.most(); n < 1 || n > most {
		return nil, fmt.Errorf("%d stages: the graph can be cut into 1 to %d", n, most)
	}
	across := func(soFar, _, cross int64) int64 { return soFar + cross }
	if total, starts := l.search(n, l.least(n), across); total != unreached {
		return starts, nil
	}
	// Stages that make nothing are in the way.
	largest, _ := l.search(n, unreached, func(soFar, stage, _ int64) int64 { return max(soFar, stage) })
	if largest == unreached {
		return nil, fmt.Errorf("%d stages: some would make nothing that is needed behind them; ask for fewer", n)
	}
	_, starts := l.search(n, largest, across)
	return starts, nil
}

// least is the lowest limit on the cost of a stage with which no more than n are needed, each as long as
// it can be. No n stages have a lower one.
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

// needed is the number of stages that no limit is exceeded with; more than n if there are none, or too
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

// most is the number of stages that there are cuts for.
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

// search finds n stages, none of a cost beyond limit, of the least total; more is the total with
// one more stage and what crosses the cut behind it.
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

// costs visits the ends of all stages that begin with node first and cost no more than limit.
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

// relate notes for each node and thing which node needed it last.
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
