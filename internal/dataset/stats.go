package dataset

import (
	"sync/atomic"
	"time"
)

// Stats are measurements of the loading of batches. They depend on the machine.
type Stats struct {
	Samples int64         // in batches that were made
	Bytes   int64         // read from files, decompressed
	Read    time.Duration // reading, in one goroutine
	Load    time.Duration // converting, decoding and changing: the sum of all loaders
	Loaders int
}

// Rate is the number of samples per second that reading and the loaders achieve if they never wait for the consumer of the batches; 0 before
// the first batch.
func (s Stats) Rate() float64 {
	slower := max(s.Read, s.Load/time.Duration(max(1, s.Loaders)))
	if slower <= 0 {
		return 0
	}
	return float64(s.Samples) / slower.Seconds()
}

// Stats returns the measurements of all iterations until now.
func (s *Set) Stats() Stats {
	t := &s.stats
	return Stats{
		Samples: t.samples.Load(), Bytes: s.feed.bytesRead(),
		Read: time.Duration(t.read.Load()), Load: time.Duration(t.load.Load()), Loaders: s.opts.Loaders,
	}
}

// stats are the measurements of a Set; times are nanoseconds.
type stats struct{ samples, read, load atomic.Int64 }

// timed adds the time since began to a sum.
func timed(sum *atomic.Int64, began time.Time) { sum.Add(int64(time.Since(began))) }
