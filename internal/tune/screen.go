package tune

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report"
)

// A screen ends trials early. It runs the samples first that earlier trials classified wrongly, and ends a trial whose
// accuracy misses its gate even if all other samples were classified correctly.
type screen struct {
	bound  float64        // of the gate on accuracy
	source []metric.Count // by run, of the first trial
	lost   []float64      // by run: correct labels of the source that trials lost, over all trials
}

// screenFraction is the divisor of the number of runs for the runs of a screen, which a trial that passes it repeats.
const screenFraction = 8

// newScreen is nil without a gate on accuracy, and for samples that depend on those before them.
func newScreen(set *dataset.Set, gates []report.Limit) *screen {
	i := slices.IndexFunc(gates, func(g report.Limit) bool { return g.Name == accuracyGate })
	if i < 0 || len(set.Carry()) > 0 {
		return nil
	}
	return &screen{bound: gates[i].Bound}
}

// learn adds the counts of a trial on all samples.
func (s *screen) learn(counts []metric.Count) {
	if s == nil || len(counts) == 0 {
		return
	}
	// What the source classifies correctly is the same in each trial.
	if s.source == nil {
		s.source, s.lost = counts, make([]float64, len(counts))
	}
	for i, c := range counts {
		s.lost[i] += max(0, c.Before-c.After)
	}
}

// hardest are the runs that lost most, without the last one, which may be smaller than the others.
func (s *screen) hardest() []int {
	var runs []int
	for i, lost := range s.lost[:max(0, len(s.lost)-1)] {
		if lost > 0 {
			runs = append(runs, i)
		}
	}
	slices.SortStableFunc(runs, func(a, b int) int { return cmp.Compare(s.lost[b], s.lost[a]) })
	// A trial that passes repeats these runs: few of them keep that cheap.
	return runs[:min(len(runs), len(s.lost)/screenFraction)]
}

// errMissed ends a trial.
var errMissed = errors.New("the gate on accuracy is missed")

// A trialCounts is the runs of a trial.
type trialCounts struct {
	*screen
	ends   bool // the trial may end early
	wrong  float64
	counts []metric.Count
}

// newTrialCounts is that of a new trial. Until a choice holds the gates, trials are complete: the error of the search
// states the accuracy of the nearest one.
func (t *tuner) newTrialCounts() *trialCounts {
	return &trialCounts{screen: t.screen, ends: t.screen != nil && t.best != nil}
}

// add adds a run; it returns errMissed if the gate is missed even if all other labels are classified correctly.
func (c *trialCounts) add(n metric.Count) error {
	if c.screen == nil {
		return nil
	}
	c.counts = append(c.counts, n)
	c.wrong += n.Labels - n.After
	// The last run does not end a trial: it is complete then, with its metrics.
	if c.ends && len(c.counts) < len(c.source) && c.misses(c.wrong) {
		return errMissed
	}
	return nil
}

// screenTrial runs the hardest samples and returns their number if the gate on accuracy is missed after them, else 0.
func (t *tuner) screenTrial(ctx context.Context, s *engine.Interpreter) (samples int, err error) {
	trialCounts := t.newTrialCounts()
	if !trialCounts.ends {
		return 0, nil
	}
	scores := verify.ScoreOutputs(t.Scores, verify.PortNames(t.outputs.Outputs()))
	start := func(b *dataset.Batch) (func(context.Context) (map[string]*ir.Array, error), error) {
		return func(ctx context.Context) (map[string]*ir.Array, error) {
			return s.Run(ctx, verify.InputsOf(s, b.Inputs), nil)
		}, nil
	}
	err = verify.InOrder(ctx, t.concurrent, t.set.Batches(ctx, t.order(t.screen.hardest())), start,
		func(b *dataset.Batch, got map[string]*ir.Array) error {
			n, err := metric.NewAccuracy().Add(&metric.Batch{Got: got, Outputs: scores, Labels: b.Labels, N: b.N})
			if err != nil {
				return err
			}
			samples += b.N
			return trialCounts.add(n)
		})
	if errors.Is(err, errMissed) {
		return samples, nil
	}
	return 0, err
}

// misses reports whether a trial with this number of wrong labels misses the gate if all others are correct.
func (s *screen) misses(wrong float64) bool {
	labels, before := 0.0, 0.0
	for _, c := range s.source {
		labels += c.Labels
		before += c.Before
	}
	// All labels that were not run count as correct, so that no trial ends that might hold the gate.
	return (before-(labels-wrong))/labels > s.bound+slack
}
