package verify

import (
	"context"
	"errors"
	"time"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// Both models are timed in at least minRuns runs, and in further ones until timedFor has passed.
const (
	minRuns  = 5
	timedFor = time.Second
)

// Latency times runs of a and b in turn on the first batch of set. The minimum counts: cold caches and other load
// of the machine only add time.
func Latency(ctx context.Context, a, b engine.Session, set *dataset.Set, o Options) (*verification.Latency, error) {
	for batch, err := range set.Batches(ctx, dataset.Order{Size: set.Size(o.Batch)}) {
		if err != nil {
			return nil, err
		}
		return timeBoth(ctx, a, b, dataset.NewState(set.Carry()).Inputs(batch))
	}
	return nil, errors.New("the data has no samples")
}

func timeBoth(ctx context.Context, a, b engine.Session, in map[string]*ir.Array) (*verification.Latency, error) {
	first, second := InputsOf(a, in), InputsOf(b, in)
	l := &verification.Latency{}
	for start := time.Now(); l.Runs < minRuns || time.Since(start) < timedFor; l.Runs++ {
		// In turn, so that changes of the machine's load meet both.
		before, err := timeRun(ctx, a, first)
		if err != nil {
			return nil, &SideError{First, err}
		}
		after, err := timeRun(ctx, b, second)
		if err != nil {
			return nil, &SideError{Second, err}
		}
		if l.Runs == 0 {
			l.Before, l.After = before, after
		}
		l.Before, l.After = min(l.Before, before), min(l.After, after)
	}
	return l, nil
}

// timeRun is the time of one run in seconds.
func timeRun(ctx context.Context, s engine.Session, in map[string]*ir.Array) (float64, error) {
	start := time.Now()
	_, err := s.Run(ctx, in, nil)
	return time.Since(start).Seconds(), err
}
