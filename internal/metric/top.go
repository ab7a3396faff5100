package metric

// top is accuracy: the fraction of labels whose class is among the k highest scores. Of equal scores the class of the
// lowest number is first.
func top(k int) func(options) (Scorer, error) {
	return func(options) (Scorer, error) { return newTop(k), nil }
}

func newTop(k int) *mean {
	return &mean{ratios: func(b *Batch, out outputs) ([]ratio, error) { return hits(b, out, k) }}
}

// An Accuracy measures the metric top1 and counts correct labels by run.
type Accuracy struct{ top *mean }

// NewAccuracy starts a measurement.
func NewAccuracy() *Accuracy { return &Accuracy{newTop(1)} }

// A Count is a number of labels, and those of them that the reference and the other model classify correctly.
type Count struct{ Labels, Before, After float64 }

// Add accumulates a batch and returns its counts; without outputs of the reference, Before is After. An *Inapplicable
// means that the outputs or labels have no classes.
func (a *Accuracy) Add(b *Batch) (Count, error) { return a.top.addBatch(b) }

// Changed are the number of labels, and those that only the reference classifies correctly, and only the other model.
func (a *Accuracy) Changed() (labels, lost, gained float64) {
	return a.top.weight, a.top.lost, a.top.gained
}

// Score is the accuracy over all batches.
func (a *Accuracy) Score() Score { return a.top.score() }

// hits are the numbers of correct labels of each sample.
func hits(b *Batch, out outputs, k int) ([]ratio, error) {
	labels, err := classLabels(b)
	if err != nil {
		return nil, err
	}
	p, err := predictions(b, out, false)
	if err != nil {
		return nil, err
	}
	if p.classes == 0 && k > 1 {
		return nil, inapplicable("the output holds classes, not scores")
	}
	if err := p.checkLabels(b, labels); err != nil {
		return nil, err
	}
	all := make([]ratio, b.N)
	for i, row := range labels {
		for at, label := range row {
			// It counts neither as correct nor as a label.
			if label < 0 {
				continue
			}
			all[i].weight++
			if p.classes == 0 && p.class(i, at) == label || p.classes > 0 && p.rank(i, at, label) < k {
				all[i].value++
			}
		}
	}
	return all, nil
}
