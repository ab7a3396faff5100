package memory

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// The limit of the Go runtime is that of the whole process, and so are these.
var (
	limiting sync.Mutex   // held while the limit is set
	bounds   atomic.Int64 // number of callers of Bound whose limit is in force
)

// SetLimit sets the soft limit of the Go runtime, unless Bound has set one.
func SetLimit(bytes int64) {
	limiting.Lock()
	defer limiting.Unlock()
	if bounds.Load() == 0 {
		debug.SetMemoryLimit(bytes)
	}
}

// Bound limits the memory of this process to budget bytes: the garbage collector runs as often as that requires. spare bytes are kept free
// for a single allocation that exceeds the limit of the Go runtime. The function it returns restores the limit.
func Bound(budget, spare int64) (restore func()) {
	p := Measure()
	other := p.Program + max(0, p.Resident-p.Go)
	limiting.Lock()
	defer limiting.Unlock()
	bounds.Add(1)
	least := max(runtimeBytes, p.Go) + fixedHeadroom // with less the collector would run all the time
	before := debug.SetMemoryLimit(max(least, budget-other-spare))
	return func() {
		limiting.Lock()
		defer limiting.Unlock()
		bounds.Add(-1)
		debug.SetMemoryLimit(before)
	}
}
