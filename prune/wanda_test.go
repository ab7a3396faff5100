package prune

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// scaled is a graph input whose channels, on an axis of n, are multiplied by different powers of 10: 1, 1000, 1, 1000,
// ...
func (b *bench) scaled(dt ir.DType, shape []int64, axis int) *ir.Value {
	x := b.g.AddValue("input")
	x.Type = &ir.Type{Elem: dt}
	for _, n := range shape {
		x.Type.Shape = append(x.Type.Shape, ir.Dim{N: n})
	}
	b.g.Inputs = append(b.g.Inputs, x)
	by, values := slices.Repeat([]int64{1}, len(shape)), []float64{}
	by[axis] = shape[axis]
	for i := range shape[axis] {
		values = append(values, math.Pow(1000, float64(i%2)))
	}
	return b.node("Mul", []*ir.Value{x, b.weight("factors", dt, by, values...)})
}

// Elements of small inputs are pruned although they are larger, in each output row separately.
func TestWandaPrunesSmallInputs(t *testing.T) {
	group := ir.IntAttr("group", 2)
	for name, c := range map[string]struct {
		op      string
		dt      ir.DType
		x, w    []int64
		axis    int
		attrs   []*ir.Attr
		options []string
		values  []float64
		want    []float64
	}{
		"MatMul": {"MatMul", ir.Float, []int64{3, 4}, []int64{4, 2}, 1, nil, nil,
			[]float64{9, 90, 1, 10, 8, 80, -2, -20}, []float64{0, 0, 1, 10, 0, 0, -2, -20}},
		"float16": {"MatMul", ir.Float16, []int64{3, 4}, []int64{4, 2}, 1, nil, nil,
			[]float64{9, 90, 1, 10, 8, 80, -2, -20}, []float64{0, 0, 1, 10, 0, 0, -2, -20}},
		"Gemm": {"Gemm", ir.Float, []int64{3, 4}, []int64{2, 4}, 1, []*ir.Attr{ir.IntAttr("transB", 1)}, nil,
			[]float64{9, 1, 8, -2, 90, 10, 80, 20}, []float64{0, 1, 0, -2, 0, 10, 0, 20}},
		"odd rows": {"Gemm", ir.Float, []int64{3, 3}, []int64{2, 3}, 1, []*ir.Attr{ir.IntAttr("transB", 1)}, nil,
			[]float64{9, 1, 0.125, 9, 1, 0.125}, []float64{0, 1, 0, 9, 1, 0}},
		"Conv": {"Conv", ir.Float, []int64{2, 4, 5, 5}, []int64{1, 4, 1, 2}, 1, nil, nil,
			[]float64{9, 7, 1, 2, 8, 9, -2, 1}, []float64{0, 0, 1, 2, 0, 0, -2, 1}},
		"weak filter": {"Conv", ir.Float, []int64{2, 2, 5, 5}, []int64{2, 2, 1, 1}, 1, nil, nil,
			[]float64{9000, 9, 8, 0.001}, []float64{9000, 9, 0, 0}},
		"grouped Conv": {"Conv", ir.Float, []int64{2, 4, 5, 5}, []int64{2, 2, 1, 1}, 1, []*ir.Attr{group}, nil,
			[]float64{9, 1, 8, -2}, []float64{0, 1, 0, -2}},
		"2:4": {"MatMul", ir.Float, []int64{3, 8}, []int64{8, 1}, 1, nil, []string{"pattern", "2:4"},
			[]float64{9, 1, 8, 2, 9000, 90, 8000, 80}, []float64{0, 1, 0, 2, 0, 90, 0, 80}},
		"2:4 of Conv": {"Conv", ir.Float, []int64{2, 4, 5, 5}, []int64{1, 4, 1, 2}, 1, nil, []string{"pattern", "2:4"},
			[]float64{9, 7, 1, 2, 8, 9, -2, 1}, []float64{0, 0, 1, 2, 0, 0, -2, 1}},
		"zeros remain": {"MatMul", ir.Float, []int64{3, 4}, []int64{4, 1}, 1, nil, nil, []float64{9, 0, 8, 0},
			[]float64{9, 0, 8, 0}},
		"largest first": {"MatMul", ir.Float, []int64{3, 4}, []int64{4, 1}, 1, nil, []string{"amount", "0.75"},
			[]float64{9, 1, 8, 2}, []float64{0, 0, 0, 2}},
	} {
		b := newBench(t)
		w := b.weight("w", c.dt, c.w, c.values...)
		b.g.AddOutput(b.node(c.op, []*ir.Value{b.scaled(c.dt, c.x, c.axis), w}, c.attrs...))
		for range 2 { // a second run changes nothing
			b.run(wandaMethod, c.options...)
			if got := b.values(w); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
			}
		}
	}
}

// Inputs are those of the pruned model: here they are zero, and the first elements are pruned instead of the smallest.
func TestLaterLayersObservePrunedOnes(t *testing.T) {
	b := newBench(t)
	first, second := b.weight("first", ir.Float, []int64{4, 4}, slices.Repeat([]float64{1}, 16)...),
		b.weight("second", ir.Float, []int64{4, 1}, 4, 3, 2, 1)
	x := b.node("MatMul", []*ir.Value{b.scaled(ir.Float, []int64{3, 4}, 1), first})
	b.g.AddOutput(b.node("MatMul", []*ir.Value{b.node("Relu", []*ir.Value{x}), second}))
	b.run(wandaMethod, "amounts", "first=1")
	if got, want := b.values(second), []float64{0, 0, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Weights of other operators stay, and so do all in a dry run.
func TestWandaSkips(t *testing.T) {
	b := newBench(t)
	x := b.scaled(ir.Float, []int64{1, 2, 4}, 2)
	b.g.AddOutput(b.node("MatMul", []*ir.Value{x, b.weight("w", ir.Float, []int64{4, 1}, 1, 2, 3, 4)}))
	b.g.AddOutput(b.node("RNN", []*ir.Value{x, b.weight("gates", ir.Float, []int64{1, 1, 4}, 1, 2, 3, 4),
		b.weight("states", ir.Float, []int64{1, 1, 1}, 1)}, ir.IntAttr("hidden_size", 1)))
	b.step.Env.DryRun = true
	rows := b.run(wandaMethod)
	if r := rowOf(t, rows, "gates"); r.Status != pass.Skipped || r.Reason.Code != pass.Unsupported {
		t.Errorf("%+v", r)
	}
	if r := rowOf(t, rows, "w"); r.Status != pass.Changed || !strings.HasPrefix(r.Notes[0].Detail, "2 of 4 elements") {
		t.Errorf("%+v", r)
	}
}
