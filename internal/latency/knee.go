package latency

import "github.com/mcompress/mcompress/report/benchmark"

// kneeFraction is the fraction of the best throughput that the knee has at least.
const kneeFraction = 0.95

// MarkKnees marks, for each model and backend with several batch sizes, the knee of its throughput: the smallest batch
// size with at least 95 % of the most samples per second. A larger one takes more memory for hardly more throughput.
func MarkKnees(all []*benchmark.Measure) {
	type series struct{ model, backend string }
	by := map[series][]*benchmark.Measure{}
	for _, m := range all {
		s := series{m.Model, m.Backend}
		by[s] = append(by[s], m)
	}
	for _, ms := range by {
		if i := knee(ms, func(m *benchmark.Measure) (int64, float64) { return m.Batch, m.PerSec }); i >= 0 {
			ms[i].Knee = true
		}
	}
}

// MarkKnee marks the knee of the throughput of one model's training.
func MarkKnee(steps []*benchmark.TrainingStep) {
	if i := knee(steps, func(s *benchmark.TrainingStep) (int64, float64) { return s.Batch, s.PerSec }); i >= 0 {
		steps[i].Knee = true
	}
}

// knee returns the index of the knee of batch sizes and samples per second; -1 with fewer than two.
func knee[T any](all []T, of func(T) (batch int64, rate float64)) (found int) {
	best, smallest := 0.0, int64(0)
	for _, x := range all {
		_, rate := of(x)
		best = max(best, rate)
	}
	found = -1
	if len(all) < 2 {
		return found
	}
	for i, x := range all {
		if batch, rate := of(x); rate >= kneeFraction*best && (found < 0 || batch < smallest) {
			found, smallest = i, batch
		}
	}
	return found
}
