package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/mcompress/mcompress/internal/memory"
)

// recipeDivisor limits the memory of lazy tensors to a fraction of the memory limit: the rest is for the graph, the report and
// garbage that is not collected yet.
const recipeDivisor = 2

// limitMemory makes the garbage collector run more often before the heap exceeds limit bytes.
func limitMemory(limit int64) { memory.SetLimit(limit) }

// raiseMemoryLimit raises the limit after each collection that leaves more than half of it live, to twice what is live: with
// less memory for garbage the collector would run more often than it does without a limit. A graph of a million nodes is larger than the
// default limit.
func raiseMemoryLimit() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if bytes, limit := int64(live[0].Value.Uint64()), debug.SetMemoryLimit(-1); bytes > limit/2 {
		limitMemory(2 * bytes)
	}
	runtime.AddCleanup(new([64]byte), func(struct{}) { raiseMemoryLimit() }, struct{}{})
}

// limits returns the limits of a run of a model.
func (t *tool) limits() memory.Limits {
	return memory.LimitsOf(int64(t.memory), t.limited, t.maxSteps)
}

// recipeBudget returns the memory budget of lazy tensors under the limit.
func recipeBudget(limit int64) int64 { return max(1, limit/recipeDivisor) }
