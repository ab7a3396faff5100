package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestProgramSizes(t *testing.T) {
	usual := ProgramSize(100)
	for _, c := range []struct{ measured, want int64 }{{0, usual}, {usual, usual}, {usual + 1, 48 << 20},
		{48 << 20, 48 << 20}, {100 << 20, 112 << 20}} {
		if got := ProgramOf(100, c.measured); got != c.want {
			t.Errorf("measured %d: got %d, want %d", c.measured, got, c.want)
		}
	}
	if one, more := Headroom(100<<20, 0), Headroom(100<<20, 1<<20); more-one != 2<<20 {
		t.Errorf("a transient array of 1 MiB adds %d bytes", more-one)
	}
}

// Bound keeps the memory of the process within a budget where garbage would exceed it, and restores the limit.
func TestProcessIsBound(t *testing.T) {
	debug.FreeOSMemory()
	p := Measure()
	if p.Program <= 0 || p.Go <= 0 {
		t.Fatalf("%+v", p)
	}
	const array, spare = 8 << 20, 16 << 20
	before := debug.SetMemoryLimit(-1)
	budget := p.Total() + 48<<20
	restore := Bound(budget, spare)
	SetLimit(before) // has no effect
	for range 100 {
		b := make([]byte, array)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		if now := Measure(); now.Total() > budget {
			t.Fatalf("%+v exceeds %d bytes", now, budget)
		}
		runtime.KeepAlive(b)
	}
	restore()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the limit is %d, before %d", got, before)
	}
}
