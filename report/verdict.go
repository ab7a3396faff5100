package report

import (
	"fmt"

	"github.com/mcompress/mcompress/report/verification"
)

// A Verdict is the result of all gates, and the samples that the outputs were compared on.
type Verdict struct {
	// absent without gates, and while a gate is open that no other one's failure decides
	Passed *bool `json:"passed,omitempty"`
	Gates  int   `json:"gates"`  // all of them
	Failed int   `json:"failed"` // those that do not hold
	// gates besides them that are not evaluated, as there is no baseline yet
	First    int    `json:"first,omitempty"`
	Evidence string `json:"evidence"` // the samples with their digest, or "not run" and why
	// a gate on outputs was evaluated on random inputs, which are no evidence of accuracy
	RandomInputs bool `json:"random_inputs"`
	// a gate on outputs was evaluated on samples that the result was also trained, calibrated or chosen on
	Reused bool `json:"reused_samples,omitempty"`
}

// NewVerdict is the verdict of gates on a comparison of models, nil where they were not run.
func NewVerdict(gates []Gate, v *verification.Result) Verdict {
	d := Verdict{Gates: len(gates), Evidence: v.Evidence()}
	open := false
	for _, g := range gates {
		if g.First {
			d.Gates--
			d.First++
			continue
		}
		open = open || g.Open
		if !g.Held && !g.Open {
			d.Failed++
		}
		onOutputs := v != nil && KindOf(g.Name) == OnOutputs
		d.RandomInputs = d.RandomInputs || onOutputs && v.Data.Caveat() != ""
		d.Reused = d.Reused || onOutputs && v.Data != nil && len(v.Data.Uses) > 0
	}
	// A gate that failed decides, whatever an open one will be.
	if passed := d.Failed == 0; d.Gates > 0 && !(passed && open) {
		d.Passed = &passed
	}
	return d
}

// Qualifier follows a word for the result; it is empty where gates on outputs were evaluated on samples of no other
// use, or where there are none.
func (d Verdict) Qualifier() string {
	switch {
	case d.RandomInputs:
		return " on random inputs"
	case d.Reused:
		return " on samples also used to make the result"
	}
	return ""
}

// Text is the verdict in words, without the evidence.
func (d Verdict) Text() string {
	if d.First > 0 {
		return fmt.Sprintf(
			"%s; %s not evaluated, as there is no baseline yet (first champion)",
			d.evaluated(),
			plural(int64(d.First), "gate"),
		)
	}
	return d.evaluated()
}

// evaluated is the result of the evaluated gates in words.
func (d Verdict) evaluated() string {
	switch {
	case d.Gates == 0:
		return "no gates"
	case d.Passed == nil:
		return "open: not all gates were evaluated"
	case *d.Passed:
		return fmt.Sprintf("passed%s: %d of %d gates hold", d.Qualifier(), d.Gates, d.Gates)
	}
	return fmt.Sprintf("failed%s: %d of %d gates do not hold", d.Qualifier(), d.Failed, d.Gates)
}
