package partition

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// lines draws short lines with shared resources and excluded cuts.
func lines(t *rapid.T) *line {
	n := rapid.IntRange(1, 9).Draw(t, "nodes")
	l := &line{cross: make([]int64, n+1), producers: make([]int, n+1)}
	for range rapid.IntRange(0, 4).Draw(t, "things") {
		l.resources = append(l.resources, rapid.Int64Range(0, 20).Draw(t, "thing"))
	}
	for i := range n {
		l.own = append(l.own, rapid.Int64Range(0, 20).Draw(t, "own"))
		var needs []int
		for thing := range l.resources {
			if rapid.Bool().Draw(t, "needs") {
				needs = append(needs, thing)
			}
		}
		l.needs = append(l.needs, needs)
		if i > 0 {
			l.cross[i] = rapid.Int64Range(-1, 20).Draw(t, "cross")
			l.producers[i] = rapid.IntRange(max(0, i-3), i-1).Draw(t, "makes")
		}
	}
	l.producers[n] = n - 1
	return l
}

// price is the cost of a partition by its definition; ok is false if it is not allowed.
func price(l *line, starts []int) (largest, cross int64, ok bool) {
	for k, first := range starts[:len(starts)-1] {
		end := starts[k+1]
		cost, have := int64(0), map[int]bool{}
		for i := first; i < end; i++ {
			cost += l.own[i]
			for _, thing := range l.needs[i] {
				have[thing] = true
			}
		}
		for thing := range have {
			cost += l.resources[thing]
		}
		largest = max(largest, cost)
		cross += l.cross[end]
		if l.cross[end] < 0 || l.producers[end] < first {
			return 0, 0, false
		}
	}
	return largest, cross, true
}

// all are the partitions of nodes into n stages.
func all(nodes, n int) [][]int {
	if n == 1 {
		return [][]int{{0, nodes}}
	}
	var list [][]int
	for last := n - 1; last < nodes; last++ {
		for _, p := range all(last, n-1) {
			list = append(list, append(p[:len(p):len(p)], nodes))
		}
	}
	return list
}

func TestPartitionIsTheBestThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := lines(t)
		n := rapid.IntRange(1, len(l.own)).Draw(t, "stages")
		found := false
		var largest, cross int64
		for _, starts := range all(len(l.own), n) {
			size, bytes, ok := price(l, starts)
			if ok && (!found || size < largest || size == largest && bytes < cross) {
				found, largest, cross = true, size, bytes
			}
		}
		starts, err := l.partition(n)
		if !found {
			if err == nil {
				t.Fatalf("got %v where no partition exists", starts)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		size, bytes, ok := price(l, starts)
		if !ok || size != largest || bytes != cross || len(starts) != n+1 {
			t.Fatalf("got %v: %d and %d across, want %d and %d", starts, size, bytes, largest, cross)
		}
	})
}

func TestMoreStagesThanCuts(t *testing.T) {
	l := &line{own: []int64{1, 1, 1}, needs: make([][]int, 3), cross: []int64{0, -1, 5, 0}, producers: []int{0, 0, 1, 2}}
	for n, want := range map[int]string{0: "0 stages: the graph can be partitioned into 1 to 2",
		3: "3 stages: the graph can be partitioned into 1 to 2"} {
		if _, err := l.partition(n); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Where the best cut leaves a stage without outputs that are needed, it is the next best one, though another one hands
// on fewer bytes.
func TestNextBestPartition(t *testing.T) {
	for worse := range int64(10) { // than the best cut, which is before the last node
		l := &line{own: []int64{9, 1, 1 + worse, 20}, needs: make([][]int, 4), cross: []int64{0, 1, 10, 0, 0},
			producers: []int{0, 0, 1, 2, 2}}
		if got, err := l.partition(2); err != nil || !slices.Equal(got, []int{0, 2, 4}) {
			t.Errorf("worse by %d: got %v, %v", 1+worse, got, err)
		}
	}
}
