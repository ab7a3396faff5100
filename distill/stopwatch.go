package distill

import (
	"time"

	"github.com/mcompress/mcompress/pass"
)

// A stopwatch divides the time of a training by activity: each lap adds the time since the last one.
// Its times are progress, never a part of the report.
type stopwatch struct {
	pass.Progress
	last time.Time
}

// start begins the first lap.
func (w *stopwatch) start() { w.last = time.Now() }

// lap adds the time since the last lap to that of an activity, and returns it.
func (w *stopwatch) lap(activity *time.Duration) time.Duration {
	now := time.Now()
	took := now.Sub(w.last)
	*activity += took
	w.last = now
	return took
}

// beginStep begins the time of a step: the recorder may have spent some after the last one.
func (t *trainer) beginStep() {
	t.watch.start()
	t.settings.Recorder.Begin()
}

// counted counts a step.
func (t *trainer) counted(loss float64) {
	w := &t.watch
	w.lap(&w.Compute)
	t.settings.Recorder.End()
	w.Ran, w.Samples = w.Ran+1, w.Samples+t.layout.batch
	w.Loss = loss
	t.notify()
}

// notify passes the progress on.
func (t *trainer) notify() {
	t.watch.Method, t.watch.Step, t.watch.Steps = t.settings.method, t.state.Step, t.state.Total
	stats := t.loader.stats()
	t.watch.Loaders, t.watch.Bytes = stats.Rate(), stats.Bytes
	if t.progress != nil {
		t.progress(t.watch.Progress)
	}
}

// A clock measures the time since its start, for --time.
type clock struct{ begin time.Time }

func startClock() clock { return clock{time.Now()} }

func (c clock) seconds() float64 { return time.Since(c.begin).Seconds() }
