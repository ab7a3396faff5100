package metric

import (
	"maps"
	"math"
	"slices"
)

// matches count the labels of a class: true positives, false positives and false negatives.
type matches struct{ both, predicted, labelled float64 }

// counts are the matches by class.
type counts map[int64]matches

// positive is the only class of predictions by a threshold.
const positive = 1

// newF1 is the mean of the F1 of all classes in labels or predictions, 2·tp / (2·tp + fp + fn), as scikit-learn's
// f1_score(average="macro"); of one score for each label the F1 of scores above the threshold, as average="binary". On
// masks it is the Dice coefficient.
func newF1(o options) (Scorer, error) {
	threshold, err := o.number("threshold", math.Inf(-1), math.Inf(1), 0.5)
	if err != nil {
		return nil, err
	}
	return &set[counts]{
		read: func(b *Batch, side int) (func(*counts, int), error) {
			labels, err := classLabels(b)
			if err != nil {
				return nil, err
			}
			p, err := predictions(b, b.sides()[side], true)
			if err != nil {
				return nil, err
			}
			if err := p.checkLabels(b, labels); err != nil {
				return nil, err
			}
			return func(c *counts, i int) {
				if *c == nil {
					*c = counts{}
				}
				for k, label := range labels[i] {
					if label >= 0 {
						c.addPrediction(p, i, k, label, threshold)
					}
				}
			}, nil
		},
		value: macroF1,
	}, nil
}

// addPrediction counts the prediction for a label.
func (c counts) addPrediction(p *prediction, i, k int, label int64, threshold float64) {
	class := int64(0)
	if p.classes != 1 {
		class = p.class(i, k)
	} else if p.score(i, k, 0) > threshold {
		class = positive
	}
	count := func(class int64, f func(m *matches)) {
		// With a threshold only the positive class has an F1; a prediction of NaNs is of no class.
		if p.classes == 1 && class != positive || class == noClass {
			return
		}
		m := c[class]
		f(&m)
		c[class] = m
	}
	count(class, func(m *matches) { m.predicted++ })
	count(label, func(m *matches) { m.labelled++ })
	if class == label {
		count(class, func(m *matches) { m.both++ })
	}
}

// macroF1 is the mean over classes, NaN without any.
func macroF1(parts []*counts) float64 {
	all := counts{}
	for _, c := range parts {
		for class, m := range *c {
			sum := all[class]
			all[class] = matches{sum.both + m.both, sum.predicted + m.predicted, sum.labelled + m.labelled}
		}
	}
	sum := 0.0
	for _, class := range slices.Sorted(maps.Keys(all)) {
		m := all[class]
		// The denominator is not 0: a class is in the counts only with a label or a prediction.
		sum += 2 * m.both / (m.predicted + m.labelled)
	}
	return sum / float64(len(all))
}
