package engine

import (
	"context"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// Inputs of a Concat are computed in the memory of its output if they are contiguous there, it is the last to read them
// and the peak is the same.
func TestInputsOfConcatAreComputedInPlace(t *testing.T) {
	op := func(g *ir.Graph, name string, in ...*ir.Value) *ir.Value { return g.Insert(nil, name, in) }
	concat := func(g *ir.Graph, axis int64, in ...*ir.Value) *ir.Value {
		return g.Insert(nil, "Concat", in, ir.IntAttr("axis", axis))
	}
	for name, c := range map[string]struct {
		build  func(g *ir.Graph, x *ir.Value) *ir.Value // of x, [1, 2, 32]
		blocks int
		want   []float32 // the first of each 32 elements, for 1 and 2
	}{
		"contiguous": {blocks: 1, want: []float32{-1, -2, 1, 2}, build: func(g *ir.Graph, x *ir.Value) *ir.Value {
			return op(g, "Neg", concat(g, 1, op(g, "Abs", x), op(g, "Neg", x)))
		}},
		"nested": {blocks: 1, want: []float32{-1, -2, -1, -2, 1, 2, -1, -2},
			build: func(g *ir.Graph, x *ir.Value) *ir.Value {
				y := concat(g, 1, op(g, "Abs", x), op(g, "Neg", x))
				return op(g, "Neg", concat(g, 1, op(g, "Abs", x), y, op(g, "Relu", x)))
			}},
		"twice": {blocks: 1, want: []float32{-1, -2, -1, -2}, build: func(g *ir.Graph, x *ir.Value) *ir.Value {
			y := op(g, "Abs", x)
			return op(g, "Neg", concat(g, 1, y, y))
		}},
		"read later": {blocks: 2, want: []float32{0, 0, 2, 4}, build: func(g *ir.Graph, x *ir.Value) *ir.Value {
			y := op(g, "Neg", x)
			return op(g, "Sub", concat(g, 0, y, op(g, "Abs", x)), y)
		}},
		"columns": {blocks: 3, want: []float32{-1, 1, -2, 2}, build: func(g *ir.Graph, x *ir.Value) *ir.Value {
			return op(g, "Neg", concat(g, 2, op(g, "Abs", x), op(g, "Neg", x)))
		}},
		"larger peak": {blocks: 4, want: []float32{-1, -2, -1, -4}, build: func(g *ir.Graph, x *ir.Value) *ir.Value {
			y, z := op(g, "Abs", x), op(g, "Mul", x, x) // Mul has the most scratch memory
			z = g.Insert(nil, "ReduceMean", []*ir.Value{z}, ir.IntsAttr("axes", 0))
			return op(g, "Neg", concat(g, 1, y, z))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := ir.NewModel()
			m.Opsets = []ir.Opset{{Version: 17}}
			x := m.Graph.AddValue("x")
			x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 2}, {N: 32}}}
			m.Graph.Inputs = []*ir.Value{x}
			m.Graph.AddOutput(c.build(m.Graph, x))
			checkConcat(t, m, c.blocks, c.want)
		})
	}
}

func checkConcat(t *testing.T, m *ir.Model, blocks int, want []float32) {
	t.Helper()
	e, err := Open(context.Background(), m, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	u, err := e.Usage(map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{1, 2, 32}}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range u.Plan.Blocks {
		if b.Kind == memory.Activation {
			n++
		}
	}
	if n != blocks {
		t.Errorf("%d blocks, want %d", n, blocks)
	}
	x := ir.NewArray(ir.Float, 1, 2, 32)
	for i := range ir.View[float32](x) {
		ir.View[float32](x)[i] = float32(1 + i/32)
	}
	out, err := e.Run(context.Background(), map[string]*ir.Array{"x": x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range out {
		var got []float32
		for row := range slices.Chunk(ir.View[float32](a), 32) {
			got = append(got, row[0])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
