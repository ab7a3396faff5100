package distill

import (
	"time"

	"github.com/mcompress/mcompress/pass"
)

// A progress divides the time of a training by activity, and passes it on after each step: each lap adds the time since
// the last one. Its times are never a part of the report.
type progress struct {
	pass.Progress
	notify   func(pass.Progress) // called after each step and at the end; may be nil
	recorder *Recorder           // nil without one
	last     time.Time

	loaded, before pass.Loading // of earlier iterations, and at the start of the current one
}

// iterate begins an iteration over training samples.
func (p *progress) iterate(now pass.Loading) { p.loaded, p.before = p.Loading, now }

// startLap begins the first lap.
func (p *progress) startLap() { p.last = time.Now() }

// lap adds the time since the last lap to that of an activity, and returns it.
func (p *progress) lap(activity *time.Duration) time.Duration {
	now := time.Now()
	took := now.Sub(p.last)
	*activity += took
	p.last = now
	return took
}

// beginStep begins the time of a step: the recorder may have spent some after the last one.
func (p *progress) beginStep() {
	p.startLap()
	p.recorder.Begin()
}

// endStep counts a step on this number of samples. loading is that of the whole iteration.
func (p *progress) endStep(s *state, samples int, loading pass.Loading) {
	p.lap(&p.Compute)
	p.recorder.End()
	p.Ran, p.Samples = p.Ran+1, p.Samples+samples
	p.Loading = p.loaded.Add(loading.Since(p.before))
	p.report(s)
}

// report passes the progress on.
func (p *progress) report(s *state) {
	p.Step, p.Steps = s.Step, s.Total
	if p.notify != nil {
		p.notify(p.Progress)
	}
}

// A clock measures the time since its start, for --time.
type clock struct{ begin time.Time }

func startClock() clock { return clock{time.Now()} }

func (c clock) seconds() float64 { return time.Since(c.begin).Seconds() }
