package verification

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Text is the number of samples and their origin, as "8 random samples, seed 0" or "500 samples of digits.npz, which
// also trained the result".
func (d *Data) Text() string {
	kind := ""
	if d.Generated {
		kind = "random "
	}
	text := fmt.Sprintf("%d %ssample", d.Samples, kind)
	if d.Samples != 1 {
		text += "s"
	}
	if d.Name != "" {
		text += " of " + d.Name
	}
	if d.Generated {
		text += fmt.Sprintf(", seed %d", d.Seed)
	}
	if d.Batch > 1 {
		text += fmt.Sprintf(", batch size %d", d.Batch)
	}
	return text + d.reuse()
}

// reuse states what else the samples were used for, as ", which also calibrated the result"; empty for samples of no
// other use.
func (d *Data) reuse() string {
	if len(d.Uses) == 0 {
		return ""
	}
	verbs := map[string]string{
		"calibration": "calibrated",
		"search":      "chose (--auto)",
		"training":    "trained",
		"validation":  "validated",
	}
	var did []string
	for _, use := range d.Uses {
		did = append(did, cmp.Or(verbs[use], use))
	}
	if last := len(did) - 1; last > 0 {
		did = []string{strings.Join(did[:last], ", ") + " and " + did[last]}
	}
	return ", which also " + did[0] + " the result"
}

// Evidence describes the samples that the models were run on, with their digest, other uses of them, and the interval
// of the drop of accuracy; r may be nil for models that were not run.
func (r *Result) Evidence() string {
	switch {
	case r == nil:
		return "not run"
	case r.Skipped != "":
		return "not run: " + r.Skipped
	case r.Data == nil:
		return "unknown samples"
	}
	text := r.Data.Text()
	if r.Data.SHA256 != "" {
		text += fmt.Sprintf(" (SHA-256 %s)", r.Data.SHA256)
	}
	if a := r.Accuracy; a != nil && a.Drop != nil && a.Before != nil {
		text += fmt.Sprintf("; accuracy %+.2f points, %s", 100*(a.After-*a.Before), a.Drop.Text())
	}
	return text
}

// Remarks are the notes, and why accuracy was not measured, unless a metric was.
func (r *Result) Remarks() []string {
	if r.Unmeasured == "" || r.Metric != nil {
		return r.Notes
	}
	return append(r.Notes[:len(r.Notes):len(r.Notes)], "accuracy was not measured: "+r.Unmeasured)
}

// Caveat qualifies results on random inputs; it is empty for samples from files.
func (d *Data) Caveat() string {
	if d == nil || !d.Generated {
		return ""
	}
	return "random inputs are no evidence of accuracy"
}

// Text is the accuracy of both models, or of the only one.
func (a *Accuracy) Text() string {
	if a.Before == nil {
		return Percent(a.After)
	}
	text := fmt.Sprintf("%s → %s (%+.2f points)", Percent(*a.Before), Percent(a.After), 100*(a.After-*a.Before))
	if a.Drop != nil {
		text += ", " + a.Drop.Text()
	}
	return text
}

// Text is the metric of both models with the drop and its standard error, or of the only one.
func (m *Metric) Text() string {
	number := func(x *float64) string {
		if x == nil {
			return "undefined"
		}
		return fmt.Sprintf("%.5g", *x)
	}
	if m.Single {
		return number(m.After)
	}
	text := number(m.Before) + " → " + number(m.After)
	drop := m.Drop()
	if math.IsNaN(drop) {
		return text
	}
	switch {
	case drop > 0:
		text += fmt.Sprintf(" (worse by %.3g", drop)
	case drop < 0:
		text += fmt.Sprintf(" (better by %.3g", -drop)
	default:
		text += " (no change"
	}
	if m.Error != nil {
		text += fmt.Sprintf(", standard error %.2g", *m.Error)
	}
	return text + ")"
}

// Percent is a fraction in percent with two decimals at most. Only a fraction of 1 is 100 %.
func Percent(fraction float64) string {
	p := math.Round(1e4*fraction) / 100
	if fraction < 1 {
		p = min(p, 99.99)
	}
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}

// Text is the SQNR before and after the layer.
func (b *Break) Text() string {
	from, to := "exact", "no signal"
	if b.From != nil {
		from = fmt.Sprintf("%.1f dB", *b.From)
	}
	if b.To != nil {
		to = fmt.Sprintf("%.1f dB", *b.To)
	}
	return "SQNR " + from + " → " + to
}

// Text is all measures of the output, as "SQNR 41.7 dB · cosine 0.99997 · max abs error 0.16 · top-1 agreement 100 %".
func (o *Output) Text() string {
	var parts []string
	if o.Sizes != nil {
		parts = append(parts, o.Sizes.Text())
	}
	if e := o.Errors; e != nil {
		parts = append(parts, e.quantity())
		if bad := e.NonFiniteText(); bad != "" {
			parts = append(parts, "NaN or infinite: "+bad)
		}
		if e.Cosine != nil && !e.Exact {
			parts = append(parts, fmt.Sprintf("cosine %.5f", *e.Cosine))
		}
		if e.Max != nil && !e.Exact {
			parts = append(parts, fmt.Sprintf("max abs error %.2g", *e.Max))
		}
	}
	if o.Agreement != nil {
		parts = append(parts, o.AgreementText())
	}
	return strings.Join(parts, " · ")
}

// AgreementText is the agreement by name: top-1 agreement of scores, or equal elements of integers and strings.
func (o *Output) AgreementText() string {
	if o.Errors == nil {
		return "equal elements " + Percent(*o.Agreement)
	}
	return "top-1 agreement " + Percent(*o.Agreement)
}

// quantity is the SQNR with its name, or why there is none.
func (e *Errors) quantity() string {
	if text := e.Text(); text != "exact" {
		return "SQNR " + text
	}
	return "identical"
}

// Text is the SQNR for a column of that name.
func (e *Errors) Text() string {
	switch db := e.DB(); {
	case e.SQNR != nil:
		return fmt.Sprintf("%.1f dB", db)
	case e.NonFinite > 0:
		return "not finite"
	case math.IsNaN(db):
		return "undefined"
	case e.Exact:
		return "exact"
	}
	return "no signal"
}

// NonFiniteText counts the elements that are NaN or infinite: those that differ, else those
// in both models; empty if there are none.
func (e *Errors) NonFiniteText() string {
	switch {
	case e.NonFinite > 0:
		return fmt.Sprintf("%d of %d elements differ", e.NonFinite, e.Elements)
	case e.SourceNonFinite > 0:
		return fmt.Sprintf("%d of %d elements in both models", e.SourceNonFinite, e.Elements)
	}
	return ""
}
