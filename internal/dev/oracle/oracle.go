// Package oracle decides whether a decoder of content from elsewhere takes no more memory and time than the content is
// worth, whatever the content says about itself.
package oracle

import (
	"runtime/metrics"
	"testing"
	"time"
)

// A Bound is what decoding may take: a constant, and an amount for each byte of the content.
type Bound struct {
	Memory, MemoryPerByte int64 // bytes that are allocated, those that are freed meanwhile included
	Time, TimePerByte     time.Duration
}

// Linear is the bound of decoders: the constant is far below what a lying length asks for, and the amounts are those of
// structs with many fields that a few bytes of text make.
var Linear = Bound{Memory: 16 << 20, MemoryPerByte: 1 << 10, Time: time.Second, TimePerByte: 20 * time.Microsecond}

// attempts is how often what is too slow is repeated: on a busy machine anything may take long once.
const attempts = 3

// Check runs decode on size bytes of content, and fails if it takes more than b. What decode does must be repeatable.
func (b Bound) Check(t testing.TB, size int, decode func()) {
	t.Helper()
	limit := b.Time + time.Duration(size)*b.TimePerByte
	for attempt := 1; ; attempt++ {
		before, start := allocated(), time.Now()
		decode()
		took, n := time.Since(start), allocated()-before
		if most := b.Memory + int64(size)*b.MemoryPerByte; n > most {
			t.Errorf("%d bytes are allocated for %d bytes of content, more than %d", n, size, most)
			return
		}
		if took <= limit {
			return
		}
		if attempt == attempts {
			t.Errorf("%v for %d bytes of content, more than %v", took, size, limit)
			return
		}
	}
}

// allocated is the number of bytes that the process has allocated so far, up to what a thread has not counted yet: some
// kilobytes. Unlike runtime.ReadMemStats, it stops no goroutine, so that it does not slow fuzzing down.
func allocated() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
