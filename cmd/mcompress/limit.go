package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/memory"
)

// limitMemory makes the garbage collector run more often before the heap exceeds limit bytes.
func limitMemory(limit int64) { memory.SetLimit(limit) }

// spare is the minimum memory for garbage.
const spare = 32 << 20

// raiseMemoryLimit raises the limit after each collection that leaves little below it: as much garbage fits in addition to what is live as the collector
// scans, at least spare. With less the collector would run more often than it does without a limit. A graph of a million nodes is larger than
// the default limit; the numbers of tensors are not scanned.
func raiseMemoryLimit() {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(heap)
	if need := int64(heap[0].Value.Uint64() + max(heap[1].Value.Uint64(), spare)); need > debug.SetMemoryLimit(-1) {
		limitMemory(need)
	}
	// Nothing refers to the object, so that its cleanup runs after the next collection, and registers the one after it.
	runtime.AddCleanup(new([64]byte), func(struct{}) { raiseMemoryLimit() }, struct{}{})
}

// requestLimits are the limits of the global flags for a request.
func (t *tool) requestLimits() mcompress.Limits {
	l := mcompress.Limits{Workers: t.workers, Steps: t.maxSteps}
	if t.limited {
		l.Memory = int64(t.memory)
	}
	return l
}

// limits returns the limits of a run of a model.
func (t *tool) limits() memory.Limits {
	return memory.LimitsOf(int64(t.memory), t.limited, t.maxSteps)
}
