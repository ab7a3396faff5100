package tune

import (
	"math"

	"github.com/mcompress/mcompress/report/verification"
)

const (
	accuracyGate = "max-accuracy-drop"
	slack        = 1e-9 // of fractions, for rounding errors
	marginErrors = 2    // standard errors
	minCount     = 10   // minimum bound, in samples, for a bound by counts
)

// holdsWithMargin reports whether the accuracy drop is within its bound with a margin of two standard errors: the search selects the
// smallest of many choices, which favors choices that hold by chance.
func (t *tuner) holdsWithMargin(a *verification.Accuracy) bool {
	if a == nil || a.Before == nil || t.Bytes > 0 {
		return true
	}
	for _, g := range t.Gates {
		if g.Name == accuracyGate && drop(a, t.set.Len(), g.Bound) > g.Bound+slack {
			return false
		}
	}
	return true
}

// drop is an upper estimate of the accuracy drop: the fraction of n samples that became wrong, plus the margin. If the bound is only a few
// samples, the mean probability of the correct class is used instead of counts.
func drop(a *verification.Accuracy, n int, bound float64) float64 {
	if l := a.Likelihood; l != nil && bound*float64(n) < minCount {
		return l.Drop + marginErrors*l.Error
	}
	by := *a.Before - a.After
	return by + marginErrors*standardError(a, n)
}

// standardError is the standard error of the difference of accuracies on the same n samples: most differences are 0.
func standardError(a *verification.Accuracy, n int) float64 {
	by := *a.Before - a.After
	return math.Sqrt(max(0, float64(a.Differ)/float64(n)-by*by) / float64(n))
}
