package op

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestSlotsRunEachTaskOnce with one task at a time in a slot, whatever the order in which workers arrive.
func TestSlotsRunEachTaskOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		p := NewPool(workers)
		defer p.Close()
		for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 100, 1000} {
			ran, busy := make([]atomic.Int32, n), make([]atomic.Int32, workers)
			p.Slots(n, func(i, slot int) {
				if busy[slot].Add(1) != 1 {
					t.Errorf("%d workers, %d tasks: two tasks at a time in slot %d", workers, n, slot)
				}
				ran[i].Add(1)
				busy[slot].Add(-1)
			})
			for i := range ran {
				if got := ran[i].Load(); got != 1 {
					t.Errorf("%d workers, %d tasks: task %d ran %d times", workers, n, i, got)
				}
			}
		}
	}
}

// TestSlotsAreContiguous: the caller runs the first half while the other worker runs the second one.
func TestSlotsAreContiguous(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var mu sync.Mutex
	var both sync.WaitGroup
	both.Add(2)
	ran := map[int][]int{}
	p.Slots(8, func(i, slot int) {
		mu.Lock()
		ran[slot] = append(ran[slot], i)
		first := len(ran[slot]) == 1
		mu.Unlock()
		if first {
			both.Done()
			both.Wait()
		}
	})
	if ran[0][0] != 0 || ran[1][0] != 4 {
		t.Errorf("slots began with tasks %d and %d, want 0 and 4", ran[0][0], ran[1][0])
	}
}

// TestASlotTakesTheEndOfOthers while the worker of the other slot is busy with its first task.
func TestASlotTakesTheEndOfOthers(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var mu sync.Mutex
	var order []int
	started, rest := make(chan struct{}), make(chan struct{})
	p.Slots(8, func(i, slot int) {
		switch {
		case i == 4:
			close(started)
			<-rest
			return
		case i == 0:
			<-started
		}
		mu.Lock()
		defer mu.Unlock()
		if order = append(order, i); len(order) == 7 {
			close(rest)
		}
	})
	if want := []int{0, 1, 2, 3, 7, 6, 5}; !slices.Equal(order, want) {
		t.Errorf("the other slot ran %d, want %d", order, want)
	}
}

// TestSlotsPanic in the caller, after all tasks.
func TestSlotsPanic(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var ran atomic.Int32
	defer func() {
		if v := recover(); v != "two" || ran.Load() != 9 {
			t.Errorf("panic %v after %d tasks, want that of task 2 after the 9 others", v, ran.Load())
		}
	}()
	p.Slots(10, func(i, _ int) {
		if i == 2 {
			panic("two")
		}
		ran.Add(1)
	})
}

// TestSlotsNest: a task may divide its work.
func TestSlotsNest(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var ran atomic.Int32
	p.Slots(5, func(int, int) {
		p.Slots(7, func(int, int) { ran.Add(1) })
	})
	if got := ran.Load(); got != 35 {
		t.Errorf("%d tasks, want 35", got)
	}
}

// TestSlotsWithLateWorkers: workers that find nothing left do not disturb the caller, which waits for the others.
func TestSlotsWithLateWorkers(t *testing.T) {
	p := NewPool(16) // more than processors: the caller sleeps while it waits
	defer p.Close()
	rounds := 200_000
	if testing.Short() { // under the race detector
		rounds = 20_000
	}
	for range rounds {
		var ran atomic.Int32
		p.Slots(16, func(int, int) {
			ran.Add(1)
			runtime.Gosched()
		})
		if got := ran.Load(); got != 16 {
			t.Fatalf("%d tasks, want 16", got)
		}
	}
}
