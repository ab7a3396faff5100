package dataset

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcompress/mcompress/pass"
)

// Stats returns the measurements of all iterations until now.
func (s *Set) Stats() pass.Loading {
	t := &s.stats
	return pass.Loading{
		Samples: t.samples.Load(), Bytes: s.feed.bytesRead(), Read: time.Duration(t.read.Load()),
		Decode:  time.Duration(t.decode.Load()),
		Augment: time.Duration(t.augment.Load()), Idle: time.Duration(t.idle.Load()), Loaders: int(t.loaders.Load()),
	}
}

// InMemory returns the bytes of samples in memory now: complete batches, the maximum of those that are read and loaded,
// reused memory, decoded images, and data that stays in memory.
func (s *Set) InMemory() int64 {
	bytes := s.stats.held.Load() + s.recycler.held.Load() + s.feed.resident()
	if t, ok := s.feed.(*table); ok {
		bytes += t.samples.images.Load()
	}
	return bytes
}

// stats are the measurements of a Set; times are nanoseconds.
type stats struct {
	samples, read, decode, augment, idle atomic.Int64
	held                                 atomic.Int64 // bytes of batches
	loaders                              atomic.Int64 // of the last iteration
}

// addSince adds the time since began to a sum.
func addSince(sum *atomic.Int64, began time.Time) { sum.Add(int64(time.Since(began))) }

// An idleness adds the times between batches in which none is read or loaded to a sum. That after the last batch is not
// added.
type idleness struct {
	sum *atomic.Int64

	mu    sync.Mutex
	busy  int       // batches that are read or loaded
	since time.Time // there are none; zero before the first one
}

// begin begins a batch.
func (i *idleness) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy++; i.busy == 1 && !i.since.IsZero() {
		addSince(i.sum, i.since)
	}
}

// end ends a batch.
func (i *idleness) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy--; i.busy == 0 {
		i.since = time.Now()
	}
}
