package verify

import (
	"fmt"
	"math"
)

// Text says how many samples there are and where they are from.
func (d *Data) Text() string {
	text := fmt.Sprintf("%d sample", d.Samples)
	if d.Samples != 1 {
		text += "s"
	}
	if d.Generated {
		text += fmt.Sprintf(" made up from seed %d", d.Seed)
	}
	if d.Batch > 1 {
		text += fmt.Sprintf(", %d in a run", d.Batch)
	}
	return text
}

// Text is the accuracy of both models, or of the one that there is.
func (a *Accuracy) Text() string {
	if a.Before == nil {
		return Percent(a.After)
	}
	return fmt.Sprintf("%s → %s (%+.2f points)", Percent(*a.Before), Percent(a.After), 100*(a.After-*a.Before))
}

// Percent is a share of samples for people.
func Percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// Text is the SQNR before and behind the layer.
func (b *Break) Text() string {
	from, to := "exact", "no signal"
	if b.From != nil {
		from = fmt.Sprintf("%.1f dB", *b.From)
	}
	if b.To != nil {
		to = fmt.Sprintf("%.1f dB", *b.To)
	}
	return from + " → " + to
}

// Text is the SQNR in words.
func (e *Errors) Text() string {
	switch db := e.DB(); {
	case finite(db):
		return fmt.Sprintf("%.1f dB", db)
	case e.NonFinite > 0:
		return "not finite"
	case math.IsNaN(db):
		return "nothing to compare"
	case e.Exact:
		return "exact"
	}
	return "no signal"
}

// NonFiniteText counts in words the elements that are NaN or infinite: those that differ, else those
// that both models have; empty if there are none.
func (e *Errors) NonFiniteText() string {
	switch {
	case e.NonFinite > 0:
		return fmt.Sprintf("%d of %d differ", e.NonFinite, e.Elements)
	case e.SourceNonFinite > 0:
		return fmt.Sprintf("%d of %d in both", e.SourceNonFinite, e.Elements)
	}
	return ""
}
