package metric

import "github.com/mcompress/mcompress/ir"

// top is accuracy: the fraction of labels whose class is among the k highest scores. Of equal scores the class of the lowest number is first.
func top(k int) func(options) (Scorer, error) {
	return func(options) (Scorer, error) {
		return &mean{of: func(b *Batch, out outputs) ([]ratio, error) { return hits(b, out, k) }}, nil
	}
}

// Correct is the number of labels of a batch whose class has the highest score in these outputs, and the number of labels. An *Inapplicable means that the
// outputs or labels have no classes.
func Correct(b *Batch, out map[string]*ir.Array) (correct, labels float64, err error) {
	all, err := hits(b, out, 1)
	for _, r := range all {
		correct += r.value
		labels += r.weight
	}
	return correct, labels, err
}

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
	all := make([]ratio, b.N)
	for i, row := range labels {
		for at, label := range row {
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
