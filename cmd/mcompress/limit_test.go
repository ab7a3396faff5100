package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// A live heap that is larger than the memory limit raises it.
func TestMemoryLimitIsAboveTheLiveHeap(t *testing.T) {
	const limit = 32 << 20
	defer limitMemory(debug.SetMemoryLimit(limit))
	raiseMemoryLimit()
	live := make([]byte, 3*limit)
	for range 100 {
		runtime.GC()
		if debug.SetMemoryLimit(-1) > int64(len(live)) {
			break
		}
		time.Sleep(10 * time.Millisecond) // cleanups run after the collection
	}
	if got := debug.SetMemoryLimit(-1); got < int64(len(live))*5/4 || got > int64(len(live))*5 {
		t.Errorf("the limit is %d for %d live bytes", got, len(live))
	}
	runtime.KeepAlive(live)
}
