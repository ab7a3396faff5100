package memory

import (
	"runtime/debug"
	"slices"
	"sync"
)

// limits are those of the whole process.
var limits softLimits

// softLimits are soft limits of the Go runtime that are in force. The lowest one counts.
type softLimits struct {
	sync.Mutex
	bounds  []*int64 // of Bound
	unbound int64    // limit without bounds
}

// SetLimit sets the soft limit of the Go runtime, unless Bound has set one.
func SetLimit(bytes int64) {
	limits.Lock()
	defer limits.Unlock()
	if len(limits.bounds) == 0 {
		debug.SetMemoryLimit(bytes)
	}
}

// Bound limits the memory of this process to budget bytes: the garbage collector runs as often as that requires. spare
// bytes are kept free for a single allocation that exceeds the limit of the Go runtime. The function it returns ends
// that, in any order of several.
func Bound(budget, spare int64) (restore func()) {
	p := Measure()
	// The limit of the Go runtime covers its own memory only: the program and C libraries are taken from the
	// budget.
	other := p.Program + max(0, p.Resident-p.Go)
	least := max(runtimeBytes, p.Go) + fixedHeadroom // with less the collector would run all the time
	bytes := max(least, budget-other-spare)
	limits.add(&bytes)
	return func() { limits.remove(&bytes) }
}

func (l *softLimits) add(bytes *int64) {
	l.Lock()
	defer l.Unlock()
	if len(l.bounds) == 0 {
		// The limit of the caller, or of GOMEMLIMIT, which is in force again once the last bound has ended.
		l.unbound = debug.SetMemoryLimit(-1)
	}
	l.bounds = append(l.bounds, bytes)
	l.apply()
}

func (l *softLimits) remove(bytes *int64) {
	l.Lock()
	defer l.Unlock()
	l.bounds = slices.DeleteFunc(l.bounds, func(b *int64) bool { return b == bytes })
	l.apply()
}

// apply sets the lowest limit. l is locked.
func (l *softLimits) apply() {
	lowest := l.unbound
	for i, b := range l.bounds {
		if i == 0 || *b < lowest {
			lowest = *b
		}
	}
	debug.SetMemoryLimit(lowest)
}
