package distill

import (
	"time"

	"github.com/mcompress/mcompress/pass"
)

// An elapsed divides the time of a training by activity: each lap adds the time since the last one.
// Its times are progress, never a part of the report.
type elapsed struct {
	pass.Progress
	last time.Time

	loaded, before pass.Loading // of earlier iterations, and at the start of the current one
}

// iterate begins an iteration over training samples.
func (w *elapsed) iterate(now pass.Loading) { w.loaded, w.before = w.Loading, now }

// start begins the first lap.
func (w *elapsed) start() { w.last = time.Now() }

// lap adds the time since the last lap to that of an activity, and returns it.
func (w *elapsed) lap(activity *time.Duration) time.Duration {
	now := time.Now()
	took := now.Sub(w.last)
	*activity += took
	w.last = now
	return took
}

// beginStep begins the time of a step: the recorder may have spent some after the last one.
func (t *trainer) beginStep() {
	t.elapsed.start()
	t.settings.Recorder.Begin()
}

// counted counts a step.
func (t *trainer) counted(loss float64) {
	w := &t.elapsed
	w.lap(&w.Compute)
	t.settings.Recorder.End()
	w.Ran, w.Samples = w.Ran+1, w.Samples+t.layout.batch
	w.Loss, w.Loading = loss, w.loaded.Add(t.loader.stats().Since(w.before))
	t.notify()
}

// notify passes the progress on.
func (t *trainer) notify() {
	t.elapsed.Method, t.elapsed.Step, t.elapsed.Steps = t.settings.method, t.state.Step, t.state.Total
	t.elapsed.Workers = t.workers
	if t.progress != nil {
		t.progress(t.elapsed.Progress)
	}
}

// A clock measures the time since its start, for --time.
type clock struct{ begin time.Time }

func startClock() clock { return clock{time.Now()} }

func (c clock) seconds() float64 { return time.Since(c.begin).Seconds() }
