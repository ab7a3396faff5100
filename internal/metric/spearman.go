package metric

import (
	"cmp"
	"math"
	"slices"
)

// A scorePair is a prediction and its label.
type scorePair struct{ score, label float64 }

// newSpearman is Spearman's rank correlation coefficient of scores and labels: Pearson's correlation of their ranks, of
// equal values their mean rank (scipy.stats.spearmanr). An output of one number for each sample is the score. Otherwise
// samples are pairs, the first and second, third and fourth, and so on; the score is the cosine similarity of their
// embeddings, and the label of the first one is that of the pair.
func newSpearman(options) (Scorer, error) {
	p := &pairing{}
	return &set[[]scorePair]{
		read: func(b *Batch, side int) (func(*[]scorePair, int), error) {
			labels := [][]float64(nil)
			if readable(b.Labels) {
				labels = rows(b.Labels, b.N)
			}
			if labels == nil || len(labels[0]) != 1 {
				return nil, inapplicable("labels are %s; it needs one number for each sample", b.Labels)
			}
			if scores := singleScores(b, b.sides()[side]); scores != nil {
				return func(s *[]scorePair, i int) { *s = append(*s, scorePair{scores[i], labels[i][0]}) }, nil
			}
			return p.readPairs(b, side, labels)
		},
		value: spearman,
	}, nil
}

// singleScores are those of the first output of one float for each sample, nil without one.
func singleScores(b *Batch, out outputs) []float64 {
	for _, name := range b.Outputs {
		if a := out[name]; floating(a) && a.Elems() == int64(b.N) {
			return values(a)
		}
	}
	return nil
}

// A pairing keeps the first sample of a pair of each model.
type pairing struct{ first [2]*embedding }

type embedding struct {
	vector []float64
	label  float64
}

// readPairs returns the function that adds a pair at its second sample.
func (p *pairing) readPairs(b *Batch, side int, labels [][]float64) (func(*[]scorePair, int), error) {
	vs, err := embeddings(b, b.sides()[side])
	if err != nil {
		return nil, err
	}
	return func(s *[]scorePair, i int) {
		first := p.first[side]
		if first == nil {
			p.first[side] = &embedding{vs[i], labels[i][0]}
			return
		}
		// A pair may span two batches, so that its first sample outlives the call.
		p.first[side] = nil
		*s = append(*s, scorePair{dot(first.vector, vs[i]), first.label})
	}, nil
}

// spearman is the correlation of ranks, NaN where all scores or all labels are equal.
func spearman(parts []*[]scorePair) float64 {
	var x, y []float64
	for _, part := range parts {
		for _, s := range *part {
			x, y = append(x, s.score), append(y, s.label)
		}
	}
	return pearson(ranks(x), ranks(y))
}

// ranks are the ranks of xs from 1, of equal values their mean.
func ranks(xs []float64) []float64 {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(xs[i], xs[j]) })
	out := make([]float64, len(xs))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && xs[order[to]] == xs[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			// The mean of the ranks from+1 to to.
			out[i] = float64(from+to+1) / 2
		}
		from = to
	}
	return out
}

func pearson(x, y []float64) float64 {
	mx, my := average(x), average(y)
	xx, yy, xy := 0.0, 0.0, 0.0
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx += float64(dx * dx)
		yy += float64(dy * dy)
		xy += float64(dx * dy)
	}
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return xy / math.Sqrt(xx*yy)
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
