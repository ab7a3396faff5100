package tabular

import (
	"fmt"
	"math"
	"slices"
)

// A transform is applied to a model's scores: attribute post_transform.
type transform int

// They are numbered as in TreeEnsemble's attribute.
const (
	none transform = iota
	softmax
	logistic
	softmaxZero
	probit
)

func transformOf(name string) (transform, error) {
	names := []string{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}
	if i := slices.Index(names, name); i >= 0 {
		return transform(i), nil
	}
	return 0, fmt.Errorf("post_transform is %q, want one of %v", name, names)
}

// apply transforms the scores of one row.
func (t transform) apply(scores []float64) {
	switch t {
	case softmax, softmaxZero:
		exponentials(scores, t == softmaxZero)
	case logistic:
		for i, x := range scores {
			scores[i] = 1 / (1 + math.Exp(-x))
		}
	case probit:
		for i, x := range scores {
			scores[i] = math.Sqrt2 * math.Erfinv(2*x-1)
		}
	}
}

// first is the score of the first of two classes, before the transform, if the model computes only s, that of the
// second: the negative decision value, or the complementary probability.
func (t transform) first(s float64, probability bool) float64 {
	if probability && (t == none || t == probit) {
		return 1 - s
	}
	return -s
}

// exponentials converts scores to probabilities. With keepZeros scores of zero stay zero.
func exponentials(scores []float64, keepZeros bool) {
	if len(scores) == 0 {
		return
	}
	top, sum := slices.Max(scores), 0.0
	for i, x := range scores {
		// The bound, and what becomes of such a score, are those of ONNX Runtime.
		if keepZeros && math.Abs(x) <= 1e-7 {
			scores[i] = x * math.Exp(-top)
		} else {
			scores[i] = math.Exp(x - top)
		}
		sum += scores[i]
	}
	if sum == 0 {
		return
	}
	for i := range scores {
		scores[i] /= sum
	}
}
