package prune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// l1BlockPruned is the definition of l1-block, with blocks by coordinates.
func (s axisUse) l1BlockPruned(values []float64, rows, cols int, fraction float64) []int {
	height := int(s.shape[0])
	if len(s.shape) == 1 {
		height = 1
	}
	if strings.Contains(s.name, "LSTM") || strings.Contains(s.name, "GRU") || strings.Contains(s.name, "RNN") {
		height = int(product(s.shape[:len(s.shape)-1]))
	}
	width, norm, members := len(values)/height, map[[2]int]float64{}, map[[2]int][]int{}
	for i, v := range values {
		key := [2]int{i / width / rows, i % width / cols}
		norm[key] += math.Abs(v)
		members[key] = append(members[key], i)
	}
	var order [][2]int
	for key := range norm {
		order = append(order, key)
	}
	slices.SortFunc(order, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(norm[a], norm[b]), slices.Compare(a[:], b[:]))
	})
	var pruned []int
	for _, key := range order[:int(math.RoundToEven(fraction*float64(len(order))))] {
		pruned = append(pruned, members[key]...)
	}
	return pruned
}

func TestL1BlockIsItsDefinition(t *testing.T) {
	checkSights(t, func(r *rapid.T, s axisUse, values []float64) ([]int, *pass.Method, []string) {
		rows, cols, a := rapid.IntRange(1, 5).Draw(r, "rows"), rapid.IntRange(1, 5).Draw(r, "cols"), drawAmount(r)
		return s.l1BlockPruned(values, rows, cols, a), l1BlockMethod,
			[]string{"amount", text(a), "block", fmt.Sprintf("%dx%d", rows, cols)}
	})
}

// Every block counts as one, also a smaller one at the edge.
func TestL1BlockAtTheEdge(t *testing.T) {
	b := newBench(t)
	w := b.weight("w", ir.Float, []int64{3, 3}, 9, 9, 8, 9, 9, 8, 7, 7, 1)
	b.node("MatMul", []*ir.Value{nil, w})
	rows := b.run(l1BlockMethod, "block", "2")
	if got, want := b.values(w), []float64{9, 9, 8, 9, 9, 8, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if r := rowOf(t, rows, "w"); !strings.HasPrefix(r.Notes[0].Detail, "2 of 4 blocks of 2x2") {
		t.Errorf("%+v", r.Notes)
	}
}
