package layout

import "math"

// A network is a flow network for Dinic's maximum-flow algorithm: push as much as fits along shortest paths until no
// path is left. The nodes that the source still reaches are then one side of a minimum cut. The reverse of edge e is
// e^1.
type network struct {
	to    []int
	left  []int64
	edges [][]int // by node
	depth []int   // from the source, -1 if not reached
	next  []int   // first edge of a node that may still carry flow
}

// Source and sink.
const (
	source = iota
	sink
)

// never is the capacity of edges that are in no cut.
const never = math.MaxInt64

// node adds a node.
func (f *network) node() int {
	f.edges = append(f.edges, nil)
	return len(f.edges) - 1
}

// edge adds an edge from a to b and its reverse with capacity back.
func (f *network) edge(a, b int, capacity, back int64) {
	f.edges[a] = append(f.edges[a], len(f.to))
	f.edges[b] = append(f.edges[b], len(f.to)+1)
	f.to = append(f.to, b, a)
	f.left = append(f.left, capacity, back)
}

// fill pushes all that fits from source to sink.
func (f *network) fill() {
	for f.measure() {
		f.next = make([]int, len(f.edges))
		for f.push(source, never) > 0 {
		}
	}
}

// measure finds depths, and whether the sink is reached.
func (f *network) measure() bool {
	f.depth = make([]int, len(f.edges))
	for n := range f.depth {
		f.depth[n] = -1
	}
	f.depth[source] = 0
	for queue := []int{source}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, e := range f.edges[n] {
			if m := f.to[e]; f.left[e] > 0 && f.depth[m] < 0 {
				f.depth[m] = f.depth[n] + 1
				queue = append(queue, m)
			}
		}
	}
	return f.depth[sink] >= 0
}

// push sends up to most from n towards the sink on one shortest path and returns how much
// arrived.
func (f *network) push(n int, most int64) int64 {
	if n == sink {
		return most
	}
	for ; f.next[n] < len(f.edges[n]); f.next[n]++ {
		e := f.edges[n][f.next[n]]
		if f.left[e] == 0 || f.depth[f.to[e]] != f.depth[n]+1 {
			continue
		}
		if sent := f.push(f.to[e], min(most, f.left[e])); sent > 0 {
			f.move(e, sent)
			return sent
		}
	}
	return 0
}

// move moves capacity from edge e to its reverse. Edges with capacity never keep it.
func (f *network) move(e int, sent int64) {
	if f.left[e] != never {
		f.left[e] -= sent
	}
	if f.left[e^1] != never {
		f.left[e^1] += sent
	}
}

// reached reports whether n is on the source's side of the cut.
func (f *network) reached(n int) bool { return f.depth[n] >= 0 }
