package memory_test

import (
	"runtime/debug"
	"testing"

	"github.com/mcompress/mcompress/internal/memory"
)

func TestLowestBoundCountsInAnyOrder(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	high := memory.Bound(1<<40, 0)
	afterHigh := debug.SetMemoryLimit(-1)
	low := memory.Bound(1<<38, 0)
	afterLow := debug.SetMemoryLimit(-1)
	if afterLow >= afterHigh || afterHigh >= before {
		t.Fatalf("limits %d, %d, %d, want decreasing ones", before, afterHigh, afterLow)
	}
	memory.SetLimit(1 << 30)
	high()
	if now := debug.SetMemoryLimit(-1); now != afterLow {
		t.Errorf("after the end of the higher bound: %d, want %d", now, afterLow)
	}
	low()
	if now := debug.SetMemoryLimit(-1); now != before {
		t.Errorf("after both: %d, want %d", now, before)
	}
}
