package op

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestForRunsEachIndexOnce(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var hits [40]atomic.Int32
	p.For(8, func(i int) {
		p.For(5, func(j int) { hits[i*5+j].Add(1) })
	})
	for i := range hits {
		if n := hits[i].Load(); n != 1 {
			t.Errorf("index %d ran %d times", i, n)
		}
	}
}

func TestForPassesPanicsOn(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	defer func() {
		if v := recover(); v != "broken" {
			t.Errorf("recovered %v", v)
		}
	}()
	p.For(10, func(i int) {
		if i == 7 {
			panic("broken")
		}
	})
}

func TestSlotsAreUsedByOneTaskAtATime(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var busy, done [3]atomic.Int32
	p.Slots(100, func(_, slot int) {
		if busy[slot].Add(1) != 1 {
			t.Errorf("slot %d is used twice", slot)
		}
		done[slot].Add(1)
		busy[slot].Add(-1)
	})
	if n := done[0].Load() + done[1].Load() + done[2].Load(); n != 100 {
		t.Errorf("%d tasks of 100 ran", n)
	}
}

func TestRowsCoverEachRowOnce(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	for _, n := range []int{0, 1, 7, 1000, 100001} {
		var sum atomic.Int64
		p.Rows(n, 3, func(from, to int) { sum.Add(int64(to - from)) })
		if sum.Load() != int64(n) {
			t.Errorf("%d of %d rows", sum.Load(), n)
		}
	}
}

func TestBroadcastShapes(t *testing.T) {
	for _, c := range []struct{ a, b, want []int64 }{
		{[]int64{2, 3}, []int64{3}, []int64{2, 3}},
		{[]int64{4, 1, 5}, []int64{3, 1}, []int64{4, 3, 5}},
		{[]int64{1}, []int64{0}, []int64{0}},
		{nil, []int64{2}, []int64{2}},
	} {
		if got, err := BroadcastShapes(c.a, c.b); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v with %v: %v, %v", c.a, c.b, got, err)
		}
	}
	if _, err := BroadcastShapes([]int64{2}, []int64{3}); err == nil {
		t.Error("2 and 3 broadcast")
	}
}

func TestAxis(t *testing.T) {
	if got, err := Axis(-1, 3); err != nil || got != 2 {
		t.Errorf("got %d, %v", got, err)
	}
	for _, axis := range []int64{3, -4} {
		if _, err := Axis(axis, 3); err == nil {
			t.Errorf("axis %d of rank 3 is accepted", axis)
		}
	}
}

func TestIntsOfUnknownData(t *testing.T) {
	if _, err := Ints(&ir.Array{DType: ir.Int64, Shape: []int64{2}}); err != ErrUnknown {
		t.Errorf("got %v", err)
	}
	if got, err := Ints(ir.ArrayOf([]int32{-1, 5}, 2)); err != nil || !slices.Equal(got, []int64{-1, 5}) {
		t.Errorf("got %v, %v", got, err)
	}
}
