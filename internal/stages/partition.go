package stages

import (
	"fmt"
	"math"
)

// A line is nodes one behind another, as costs. Between any two of them it may be cut, unless
// that is ruled out.
type line struct {
	own    []int64 // the cost of each node
	needs  [][]int // things that nodes share within a stage; each node's, without repetition
	things []int64 // the cost of each such thing, once in each stage that needs it
	cross  []int64 // the bytes that cross the cut in front of each node and behind the last; negative where there must be none
	makes  []int   // the last node in front of each cut whose results are needed behind it, or by the caller
}

// partition cuts the line into n stages and returns where they begin, with the end of the line
// behind them. The largest stage is as small as it can be; of all such partitions it is one
// with the fewest bytes across its cuts, a value that crosses several of them counting at each. Every
// stage makes something that is needed behind it.
//
// Both are sought by dynamic programming over where a stage ends, in steps that grow as the square
// of the nodes: a stage's cost is no sum, as nodes share weights, but it is found node by node.
func (l *line) partition(n int) ([]int, error) {
	if most := l.most(); n < 1 || n > most {
		return nil, fmt.Errorf("%d stages: the graph can be cut into 1 to %d", n, most)
	}
	largest, _ := l.search(n, math.MaxInt64, func(soFar, stage, _ int64) int64 { return max(soFar, stage) })
	if largest == unreached {
		return nil, fmt.Errorf("%d stages: some would make nothing that is needed behind them; ask for fewer", n)
	}
	_, starts := l.search(n, largest, func(soFar, _, cross int64) int64 { return soFar + cross })
	return starts, nil
}

// most is the number of stages that there are cuts for.
func (l *line) most() int {
	n := min(1, len(l.own))
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
	best, from := newTable(n+1, nodes+1, int64(unreached)), newTable(n+1, nodes+1, 0)
	best[0][0] = 0
	for first := range nodes {
		l.stages(first, limit, func(end int, cost int64) bool {
			for k := range n {
				if best[k][first] == unreached {
					continue
				}
				if total := more(best[k][first], cost, l.cross[end]); total < best[k+1][end] {
					best[k+1][end], from[k+1][end] = total, first
				}
			}
			return cost <= best[n][nodes] || limit < unreached
		})
	}
	starts := make([]int, n+1)
	starts[n] = nodes
	for k := n; k > 0; k-- {
		starts[k-1] = from[k][starts[k]]
	}
	return best[n][nodes], starts
}

func newTable[T any](rows, columns int, value T) [][]T {
	t := make([][]T, rows)
	for i := range t {
		t[i] = make([]T, columns)
		for j := range t[i] {
			t[i][j] = value
		}
	}
	return t
}

// stages visits the ends of all stages that begin with node first and cost no more than limit,
// until visit has seen enough.
func (l *line) stages(first int, limit int64, visit func(end int, cost int64) bool) {
	if l.cross[first] < 0 {
		return
	}
	cost := int64(0)
	have := map[int]bool{}
	for i := first; i < len(l.own); i++ {
		cost += l.own[i]
		for _, t := range l.needs[i] {
			if !have[t] {
				have[t] = true
				cost += l.things[t]
			}
		}
		if cost > limit {
			return
		}
		end := i + 1
		if l.cross[end] >= 0 && l.makes[end] >= first && !visit(end, cost) {
			return
		}
	}
}
