package block

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// at is the element of an operand at a position of out, by NumPy's rule alone.
func at(position int, out, shape []int64) int {
	element, step := 0, 1
	for axis := len(out) - 1; axis >= 0; axis-- {
		index := position % int(out[axis])
		position /= int(out[axis])
		if k := axis - (len(out) - len(shape)); k >= 0 {
			element += index % int(shape[k]) * step
			step *= int(shape[k])
		}
	}
	return element
}

var broadcasts = []struct{ out, a, b []int64 }{
	{[]int64{}, []int64{}, []int64{}},
	{[]int64{5}, []int64{5}, []int64{}},
	{[]int64{2, 3}, []int64{2, 3}, []int64{3}},
	{[]int64{2, 3}, []int64{2, 1}, []int64{1, 3}},
	{[]int64{2, 3, 4, 5}, []int64{3, 1, 5}, []int64{2, 1, 4, 1}},
	{[]int64{7, 1, 40}, []int64{7, 1, 1}, []int64{40}},
	{[]int64{700, 3}, []int64{700, 3}, []int64{3}},
	{[]int64{700, 3}, []int64{700, 1}, []int64{1, 3}},
	{[]int64{3, 5000}, []int64{3, 1}, []int64{5000}},
	{[]int64{40, 2, 3}, []int64{40, 1, 3}, []int64{40, 2, 1}},
}

func TestRunsVisitPositionsInOrder(t *testing.T) {
	for _, c := range broadcasts {
		w := Broadcast(c.out, c.a, c.b)
		for _, part := range [][2]int{{0, w.Size()}, {w.Size() / 3, w.Size() * 2 / 3}} {
			next := part[0]
			w.Runs(part[0], part[1], func(from, n int, off []int) {
				if from != next {
					t.Fatalf("%v: a run from %d, want %d", c, from, next)
				}
				for i := range n {
					got := []int{off[0] + i*w.Step(0), off[1] + i*w.Step(1)}
					want := []int{at(from+i, c.out, c.a), at(from+i, c.out, c.b)}
					if !slices.Equal(got, want) {
						t.Fatalf("%v at %d: elements %v, want %v", c, from+i, got, want)
					}
				}
				next += n
			})
			if next != part[1] {
				t.Errorf("%v: runs to %d, want %d", c, next, part[1])
			}
		}
	}
}

func TestContiguousAxesAreMerged(t *testing.T) {
	for _, c := range []struct {
		out, a, b []int64
		inner     int
	}{
		{[]int64{2, 3, 4}, []int64{2, 3, 4}, []int64{2, 3, 4}, 24},
		{[]int64{2, 3, 4}, []int64{2, 3, 4}, []int64{}, 24},
		{[]int64{2, 3, 4}, []int64{2, 3, 4}, []int64{3, 4}, 12},
		{[]int64{2, 3, 4}, []int64{2, 3, 4}, []int64{3, 1}, 4},
	} {
		if got := Broadcast(c.out, c.a, c.b).Inner(); got != c.inner {
			t.Errorf("%v and %v: runs of %d, want %d", c.a, c.b, got, c.inner)
		}
	}
}

func TestOffset(t *testing.T) {
	for _, c := range broadcasts {
		w := Broadcast(c.out, c.a)
		for i := range w.Size() {
			if got, want := w.Offset(0, i), at(i, c.out, c.a); got != want {
				t.Fatalf("%v: position %d is element %d, want %d", c, i, got, want)
			}
		}
	}
}

func count(shape []int64) *ir.Array {
	x := make([]float32, op.Product(shape))
	for i := range x {
		x[i] = float32(i)
	}
	return ir.ArrayOf(x, shape...)
}

func TestOperandsAreInOutputOrder(t *testing.T) {
	for _, c := range broadcasts {
		inOutputOrder[float32](t, c.out, count(c.a), count(c.b))
		inOutputOrder[int64](t, c.out, converted(count(c.a)), converted(count(c.b)))
	}
}

// converted is a in 32-bit integers, which are computed in 64 bits.
func converted(a *ir.Array) *ir.Array {
	b := ir.NewArray(ir.Int32, a.Shape...)
	for i, v := range ir.View[float32](a) {
		ir.View[int32](b)[i] = int32(v)
	}
	return b
}

func inOutputOrder[T float32 | int64](t *testing.T, shape []int64, in ...*ir.Array) {
	t.Helper()
	out := &ir.Array{DType: in[0].DType, Shape: shape}
	w := Together(out, in...)
	for k, a := range in {
		o := OperandOf[T](w, k, out, a)
		buf := make([]T, Len)
		w.Blocks(w.Size()/5, w.Size(), func(from, n int, off []int) {
			part := Repeated(o.At(from, n, off, buf), make([]T, n), n)
			for i, v := range part {
				if want := at(from+i, shape, a.Shape); int(v) != want {
					t.Fatalf("%v: operand %d is %v at %d, want %d", shape, k, v, from+i, want)
				}
			}
		})
	}
}

func TestHalvesAreWidenedAndNarrowed(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float16, ir.BFloat16} {
		a := ir.NewArray(dt, 3)
		w := Write[float32](a)
		w.Set(1, 1.5)
		w.Done(2, append(w.Block(make([]float32, 1), 2, 1)[:0], -3))
		if got := Read[float32](a).Block(make([]float32, 3), 0, 3); !slices.Equal(got, []float32{0, 1.5, -3}) {
			t.Errorf("%s: got %v", dt, got)
		}
	}
}

func TestNilWriterDiscards(t *testing.T) {
	w := Write[float64](nil)
	w.Set(7, 1)
	w.Done(100, w.Block(make([]float64, 4), 100, 4))
}

func TestParallelGivesExclusiveScratch(t *testing.T) {
	pool := op.NewPool(3)
	defer pool.Close()
	c := &op.Call{Pool: pool, Work: make([]byte, 3*64)}
	done := make([]byte, 1000)
	Parallel(c, len(done), 7, 64, func(s Scratch, from, to int) {
		mine := Take[int64](&s, 8)
		for i := from; i < to; i++ {
			mine[i%8] = int64(i)
			done[mine[i%8]]++
		}
	})
	if slices.ContainsFunc(done, func(n byte) bool { return n != 1 }) {
		t.Error(fmt.Sprint("visits: ", done))
	}
}

func TestTensorErrors(t *testing.T) {
	in := []*ir.Array{nil, {DType: ir.String}, {Kind: ir.Sequence, DType: ir.Float}}
	for i := range 4 {
		if _, err := Numbers.Tensor(in, i, "X"); err == nil {
			t.Errorf("input %d is accepted", i)
		}
	}
}
