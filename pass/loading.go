package pass

import "time"

// A Loading measures the loading of samples: one goroutine reads, and loaders decode, convert and augment. It depends
// on the machine.
type Loading struct {
	Samples int64         // that were loaded
	Bytes   int64         // read from files, decompressed
	Read    time.Duration // reading
	Decode  time.Duration // decoding and converting: the sum of all loaders
	Augment time.Duration // the sum of all loaders
	Idle    time.Duration // in which nothing was read or loaded, as all batches that may be in memory were complete
	Loaders int
}

// Add returns the sum of l and a later measurement.
func (l Loading) Add(m Loading) Loading {
	return Loading{l.Samples + m.Samples, l.Bytes + m.Bytes, l.Read + m.Read, l.Decode + m.Decode, l.Augment + m.Augment,
		l.Idle + m.Idle, m.Loaders}
}

// Since returns what l has more than an earlier measurement.
func (l Loading) Since(m Loading) Loading {
	return Loading{l.Samples - m.Samples, l.Bytes - m.Bytes, l.Read - m.Read, l.Decode - m.Decode, l.Augment - m.Augment,
		l.Idle - m.Idle, l.Loaders}
}

// Busy is the time that loading takes if it never waits for the consumer of the samples.
func (l Loading) Busy() time.Duration { return max(l.Read, l.perLoader()) }

// perLoader is the mean time of a loader.
func (l Loading) perLoader() time.Duration {
	return (l.Decode + l.Augment) / time.Duration(max(1, l.Loaders))
}

// SamplesPerSecond is the number of samples per second of Busy; 0 before the first batch.
func (l Loading) SamplesPerSecond() float64 { return l.perSecond(l.Samples) }

// BytesPerSecond is the number of bytes per second of Busy; 0 before the first batch.
func (l Loading) BytesPerSecond() float64 { return l.perSecond(l.Bytes) }

func (l Loading) perSecond(n int64) float64 {
	if l.Busy() <= 0 {
		return 0
	}
	return float64(n) / l.Busy().Seconds()
}

// A Bottleneck limits the speed of training.
type Bottleneck string

// Bottlenecks of training.
const (
	Steps   Bottleneck = "steps"   // computation: samples are ready when a step needs them
	Reading Bottleneck = "reading" // of files, in one goroutine
	Loaders Bottleneck = "loaders" // decoding, conversion and augmentation
)

// waitThreshold is the fraction of the steps' time from which on waiting for samples is the bottleneck.
const waitThreshold = 0.1

// Bottleneck returns what limits the speed of training; empty before the first step.
func (p Progress) Bottleneck() Bottleneck {
	switch {
	case p.Ran == 0:
		return ""
	case p.WaitFraction() < waitThreshold:
		return Steps
	case p.Loading.Read > p.Loading.perLoader():
		return Reading
	}
	return Loaders
}
