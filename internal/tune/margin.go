package tune

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

const (
	accuracyGate = "max-accuracy-drop"
	metricGate   = "max-metric-drop"
	slack        = 1e-9 // of fractions, for rounding errors
	marginErrors = 2    // standard errors
	minCount     = 10   // minimum bound, in samples, for a bound by counts
)

// holdsWithMargin reports whether the gates hold with a margin of two standard errors: the search selects the
// smallest of many choices, which favors choices that hold by chance.
func (t *tuner) holdsWithMargin(r *verification.Result) (bool, error) {
	if t.Bytes > 0 {
		return true, nil
	}
	gates, err := report.EvaluateGates(withMargin(r), t.Gates)
	return report.Passed(gates) && accuracyHolds(r, t.Gates) && metricHolds(r.Metric, t.Gates), err
}

// metricHolds reports whether the drop of the metric is within its bound with the margin. A metric without a standard
// error has none.
func metricHolds(m *verification.Metric, gates []report.Limit) bool {
	if m == nil || m.Error == nil {
		return true
	}
	for _, g := range gates {
		if g.Name == metricGate && m.Drop()+marginErrors**m.Error > g.Bound+slack {
			return false
		}
	}
	return true
}

// accuracyHolds reports whether the accuracy drop is within its bound with the margin.
func accuracyHolds(r *verification.Result, gates []report.Limit) bool {
	a := r.Accuracy
	if a == nil || a.Before == nil {
		return true
	}
	for _, g := range gates {
		if g.Name == accuracyGate && drop(a, r.Data.Samples, g.Bound) > g.Bound+slack {
			return false
		}
	}
	return true
}

// withMargin returns r with the errors of each output worse by two standard errors, for the gates on outputs.
func withMargin(r *verification.Result) *verification.Result {
	worse := *r
	worse.Outputs = slices.Clone(r.Outputs)
	for i := range worse.Outputs {
		o := &worse.Outputs[i]
		if o.Errors != nil {
			e := lowered(*o.Errors)
			o.Errors = &e
		}
		if a := o.Agreement; a != nil && r.Data != nil && r.Data.Samples > 0 {
			low := *a - marginErrors*math.Sqrt(*a*(1-*a)/float64(r.Data.Samples))
			o.Agreement = &low
		}
	}
	return &worse
}

// lowered is e with more noise. The angle between the outputs grows with the noise, as does 1 - cosine.
func lowered(e verification.Errors) verification.Errors {
	factor := 1 + marginErrors*e.Deviation
	if e.SQNR != nil {
		db := *e.SQNR - 10*math.Log10(factor)
		e.SQNR = &db
	}
	if e.Cosine != nil {
		cosine := 1 - (1-*e.Cosine)*factor
		e.Cosine = &cosine
	}
	return e
}

// drop is an upper estimate of the accuracy drop: the fraction of n samples that became wrong, plus the margin. If the
// bound is only a few samples, the mean probability of the correct class is used instead of counts.
func drop(a *verification.Accuracy, n int, bound float64) float64 {
	if l := a.Likelihood; l != nil && bound*float64(n) < minCount {
		return l.Drop + marginErrors*l.Error
	}
	return *a.Before - a.After + marginErrors*a.Error
}
