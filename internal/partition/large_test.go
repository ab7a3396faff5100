package partition

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/ir"
)

// residualChain is a model of n nodes: products with weights of their own, each with a residual sum.
func residualChain(n int) *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	dims := []ir.Dim{{N: 1}, {N: 4}}
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: dims}
	g.Inputs = append(g.Inputs, x)
	for k := 0; k < n; k += 4 {
		w := g.AddValue(fmt.Sprintf("w%d", k))
		w.SetConst(&ir.Tensor{Spec: ir.Spec{Name: w.Name, DType: ir.Float, Shape: []int64{4, 4}},
			Source: ir.Floats(make([]float32, 16)...)})
		y := g.Insert(nil, "MatMul", []*ir.Value{x, w})
		y = g.Insert(nil, "Tanh", []*ir.Value{y})
		x = g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "Add", []*ir.Value{y, x})})
	}
	x.Type = &ir.Type{Elem: ir.Float, Shape: dims}
	g.AddOutput(x)
	return m
}

// The search finds what trying every partition finds.
func TestSearchIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "nodes")
		l := &line{needs: make([][]int, n), cross: make([]int64, n+1), producers: make([]int, n+1)}
		l.own = rapid.SliceOfN(rapid.Int64Range(0, 5), n, n).Draw(t, "own")
		l.resources = rapid.SliceOfN(rapid.Int64Range(1, 5), 3, 3).Draw(t, "things")
		for i := range n {
			l.needs[i] = rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 0, 3, rapid.ID).Draw(t, "needs")
			l.cross[i+1] = rapid.Int64Range(-1, 5).Draw(t, "cross")
			l.producers[i+1] = rapid.IntRange(0, i).Draw(t, "makes")
		}
		l.cross[n] = 0
		stages := rapid.IntRange(1, 4).Draw(t, "stages")
		got, err := l.partition(stages)
		largest, bytes := everyPartition(l, stages)
		if (err == nil) != (largest != unreached) {
			t.Fatalf("%v, but the least largest stage is %d", err, largest)
		}
		if err != nil {
			return
		}
		cost, across := int64(0), int64(0)
		for k := range stages {
			cost, across = max(cost, l.cost(got[k], got[k+1])), across+l.cross[got[k+1]]
		}
		if cost != largest || across != bytes {
			t.Errorf("%v: largest stage %d and %d bytes, want %d and %d", got, cost, across, largest, bytes)
		}
	})
}

// everyPartition is the least largest stage of all partitions into n stages, and the least bytes across cuts with it.
func everyPartition(l *line, n int) (largest, bytes int64) {
	largest, bytes = unreached, unreached
	var visit func(first, k int, cost, across int64)
	visit = func(first, k int, cost, across int64) {
		if k == n {
			if first == len(l.own) && (cost < largest || cost == largest && across < bytes) {
				largest, bytes = cost, across
			}
			return
		}
		for end := first + 1; end <= len(l.own); end++ {
			if l.cross[end] >= 0 && l.producers[end] >= first {
				visit(end, k+1, max(cost, l.cost(first, end)), across+l.cross[end])
			}
		}
	}
	visit(0, 0, 0, 0)
	return largest, bytes
}

// The time should grow with the number of nodes, not with its square: four times as many nodes must not take 16 times
// as long.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{12_500, 50_000, 200_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := residualChain(n)
			for b.Loop() {
				if _, err := New(b.Context(), m, Options{Stages: 2, By: "weights"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
