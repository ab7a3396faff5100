package latency

// kneeFraction is the fraction of the best throughput that the knee has at least.
const kneeFraction = 0.95

// MarkKnees marks, for each model and backend with several batch sizes, the knee of its throughput: the smallest batch size with at least 95 %
// of the most samples per second. A larger one takes more memory for hardly more throughput.
func MarkKnees(all []*Measure) {
	type series struct{ model, backend string }
	by := map[series][]*Measure{}
	for _, m := range all {
		s := series{m.Model, m.Backend}
		by[s] = append(by[s], m)
	}
	for _, ms := range by {
		if len(ms) > 1 {
			knee(ms).Knee = true
		}
	}
}

func knee(ms []*Measure) (found *Measure) {
	best := 0.0
	for _, m := range ms {
		best = max(best, m.PerSec)
	}
	for _, m := range ms {
		if m.PerSec >= kneeFraction*best && (found == nil || m.Batch < found.Batch) {
			found = m
		}
	}
	return found
}
