package tune

import (
	"math"

	"github.com/mcompress/mcompress/internal/verify"
)

const (
	accuracyGate = "max-accuracy-drop"
	slack        = 1e-9 // of shares, which are rounded
	toSpare      = 2    // standard errors
	countable    = 10   // samples that a bound must be for counts to say something
)

// sure reports whether the drop of accuracy keeps its bound with two standard errors to spare: of many choices that were tried the
// smallest is taken, and of those that hold by luck that is one.
func (t *tuner) sure(a *verify.Accuracy) bool {
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

// drop is the most that accuracy may have dropped by: the share of n samples that are wrong now, and chance. Where the bound is a few
// samples, probabilities of right classes say more than their number.
func drop(a *verify.Accuracy, n int, bound float64) float64 {
	if l := a.Likelihood; l != nil && bound*float64(n) < countable {
		return l.Drop + toSpare*l.Error
	}
	by := *a.Before - a.After
	return by + toSpare*standardError(a, n)
}

// standardError is that of the difference of shares, of n samples that are the same for both models: most differences are 0.
func standardError(a *verify.Accuracy, n int) float64 {
	by := *a.Before - a.After
	return math.Sqrt(max(0, float64(a.Differ)/float64(n)-by*by) / float64(n))
}
