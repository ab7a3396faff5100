package engine

import (
	"sync"

	"github.com/mcompress/mcompress/ir"
)

// An Arena is memory for the runs of several sessions, which use it one after the other: a run waits until that of
// another session ends. It has the size of the largest run. The zero value is empty.
type Arena struct {
	mu    sync.Mutex
	bytes []byte
}

// Reserve allocates at least n bytes, so that later runs of this size do not replace the memory. No run may be in
// progress.
func (a *Arena) Reserve(n int64) {
	if int64(len(a.bytes)) < n {
		// Before the allocation, so that the collector can free the old memory for it.
		a.bytes = nil
		a.bytes = ir.AlignedBytes(n)
	}
}

// take returns n bytes. a may be nil.
func (a *Arena) take(n int64) []byte {
	if a == nil {
		return ir.AlignedBytes(n)
	}
	a.Reserve(n)
	return a.bytes[:n:n]
}

// has reports whether b is the current memory. a may be nil.
func (a *Arena) has(b []byte) bool {
	return a == nil || len(b) == 0 || &b[0] == &a.bytes[0]
}

// lock waits for the runs of other sessions. a may be nil.
func (a *Arena) lock() (unlock func()) {
	if a == nil {
		return func() {}
	}
	a.mu.Lock()
	return a.mu.Unlock
}
