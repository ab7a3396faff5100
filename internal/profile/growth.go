package profile

import (
	"runtime"
	"runtime/metrics"
)

// A Growth is a quantity over steps or runs.
type Growth struct {
	Name    string  `json:"name"`
	First   int64   `json:"first"` // at the first sample after the start-up: a quarter of the samples
	Last    int64   `json:"last"`
	PerStep float64 `json:"per_step"`
	Grows   bool    `json:"grows"`   // from sample to sample, never decreasing: a leak
	Checked bool    `json:"checked"` // there are enough samples for Grows: LeastSteps steps or runs
}

// maxSamples bounds the samples of a growth: when there are as many, every second one is dropped and the distance
// doubles.
const maxSamples = 64

// leastSamples is the minimum number of samples after the start-up that a leak is reported from: one of a quantity
// without a trend increases six times in a row once in 64 cases.
const leastSamples = 7

// LeastSteps is the number of steps or runs with leastSamples after the start-up.
const LeastSteps = 9

// Samples are those of some quantities at equal distances, in bounded memory. The zero value is empty.
type Samples struct {
	distance int // steps between samples; 0 for 1
	names    []string
	rows     [][]int64
}

// Due reports whether a sample is due after this number of steps.
func (g *Samples) Due(step int) bool { return step%max(1, g.distance) == 0 }

// A Quantity is a measured number of bytes or things.
type Quantity struct {
	Name  string
	Value int64
}

// Add adds a sample. The quantities are always the same.
func (g *Samples) Add(now ...Quantity) {
	g.names = g.names[:0]
	row := make([]int64, len(now))
	for i, q := range now {
		g.names, row[i] = append(g.names, q.Name), q.Value
	}
	g.rows = append(g.rows, row)
	if len(g.rows) < maxSamples {
		return
	}
	kept := g.rows[:0]
	// Those at odd indices are at multiples of the new distance, as the later ones will be.
	for i := 1; i < len(g.rows); i += 2 {
		kept = append(kept, g.rows[i])
	}
	g.rows, g.distance = kept, 2*max(1, g.distance)
}

// Growth returns the growth of each quantity; nil without samples.
func (g *Samples) Growth() (all []Growth) {
	after := g.rows[len(g.rows)/4:]
	for i, name := range g.names {
		first, last := after[0][i], after[len(after)-1][i]
		r := Growth{Name: name, First: first, Last: last, Checked: len(after) >= leastSamples}
		r.PerStep = float64(last-first) / float64(max(1, len(after)-1)*max(1, g.distance))
		larger, smaller := 0, 0
		for k := 1; k < len(after); k++ {
			switch d := after[k][i] - after[k-1][i]; {
			case d > 0:
				larger++
			case d < 0:
				smaller++
			}
		}
		// A leak need not add at every sample; most of them must, and none may take away.
		r.Grows = r.Checked && smaller == 0 && 4*larger >= 3*(len(after)-1)
		all = append(all, r)
	}
	return all
}

// leakQuantities returns what may leak: the heap after a garbage collection, the sessions' accounts, and goroutines.
func (r *Recorder) leakQuantities() []Quantity {
	var idle, running int64
	for _, s := range r.sessions {
		if s.model != nil {
			m := s.model.Memory()
			idle, running = idle+m.Idle, running+m.Running
		}
	}
	return []Quantity{{"Go heap", HeapLive()}, {"arenas kept for later runs", idle},
		{"values of runs that ended", running}, {"goroutines", int64(runtime.NumGoroutine())}}
}

// HeapLive is the number of bytes of objects that the last garbage collection found in use.
func HeapLive() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// heapInUse is the number of bytes of objects on the heap, with those that are not collected yet.
func heapInUse() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
