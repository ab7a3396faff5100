package verification

import (
	"fmt"
	"math"
)

// A Drop is by how much the accuracy of the second model is lower than that of the first one on the same samples, as
// far as their number determines it: the interval of 95 % confidence for the drop on other samples of the same kind.
type Drop struct {
	Samples int64   `json:"samples"` // with a label
	Lost    int64   `json:"lost"`    // that only the first model classifies correctly
	Gained  int64   `json:"gained"`  // that only the second one does
	Low     float64 `json:"low"`     // a fraction of the samples, negative where the second model may be better
	High    float64 `json:"high"`
}

// z95 is the quantile of the normal distribution for intervals of 95 %.
const z95 = 1.959963984540054

// NewDrop is the drop of models of which the first one classifies before of the samples correctly.
func NewDrop(samples, before, lost, gained int64) *Drop {
	d := &Drop{Samples: samples, Lost: lost, Gained: gained}
	d.Low, d.High = pairedInterval(float64(samples), float64(before), float64(lost), float64(gained))
	return d
}

// pairedInterval is the interval of the difference of two proportions of the same samples: Newcombe, Improved
// confidence intervals for the difference between binomial proportions based on paired data, Statistics in Medicine 17,
// 1998, method 10. It combines Wilson's intervals of both, so that it is right near 0 and 1 and without a discordant
// sample.
func pairedInterval(n, before, lost, gained float64) (low, high float64) {
	after := before - lost + gained
	both, neither := before-lost, n-before-gained
	lowBefore, highBefore := wilson(before, n)
	lowAfter, highAfter := wilson(after, n)
	phi := 0.0 // correlation of both, with Newcombe's correction for continuity
	if product := before * (n - before) * after * (n - after); product > 0 {
		phi = both*neither - lost*gained
		if phi > 0 {
			phi = max(0, phi-n/2)
		}
		phi /= math.Sqrt(product)
	}
	drop, p, q := (lost-gained)/n, before/n, after/n
	distance := func(a, b float64) float64 { return math.Sqrt(max(0, a*a-2*phi*a*b+b*b)) }
	low = max(-1, drop-distance(p-lowBefore, highAfter-q))
	high = min(1, drop+distance(highBefore-p, q-lowAfter))
	const digits = 1e6
	return math.Floor(low*digits) / digits, math.Ceil(high*digits) / digits
}

// wilson is the interval of a proportion of k in n (Wilson, JASA 22, 1927).
func wilson(k, n float64) (low, high float64) {
	p, z2 := k/n, z95*z95/n
	center, half := p+z2/2, z95*math.Sqrt(p*(1-p)/n+z2/(4*n))
	return max(0, (center-half)/(1+z2)), min(1, (center+half)/(1+z2))
}

// Consistent reports whether the accuracies are those of the numbers of samples in a.Drop, and its interval follows
// from them.
func (a *Accuracy) Consistent() bool {
	d := a.Drop
	if d == nil {
		return true
	}
	if a.Before == nil || d.Samples < 1 {
		return false
	}
	n, before := float64(d.Samples), math.Round(*a.Before*float64(d.Samples))
	const digits = 1e-8 // accuracies have 9
	return math.Abs(before/n-*a.Before) < digits && math.Abs((before-float64(d.Lost-d.Gained))/n-a.After) < digits &&
		*NewDrop(d.Samples, int64(before), d.Lost, d.Gained) == *d
}

// Text is the interval of the change in points, as accuracies are compared; d may be nil.
func (d *Drop) Text() string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("95 %% interval %+.2f to %+.2f", -100*d.High, -100*d.Low)
}
