package verify

import (
	"fmt"
	"math"
)

// A Rule is what one gate looks at. Names are those of flags.
type Rule struct {
	Name   string
	AtMost bool // the bound is the most there may be, not the least
	// Value is the figure; where it is infinite or NaN, why says the reason. NaN is for
	// what the result does not tell, and is within no bound.
	Value func(*Result) (v float64, why string)
}

// Rules are the gates on what running models says. The worst output decides.
func Rules() []Rule {
	return []Rule{
		{Name: "min-sqnr", Value: (*Result).lowestSQNR},
		{Name: "min-cosine", Value: (*Result).lowestCosine},
		{Name: "min-agreement", Value: (*Result).lowestAgreement},
		{Name: "max-accuracy-drop", Value: (*Result).accuracyDrop, AtMost: true},
	}
}

func (r *Result) lowestSQNR() (float64, string) {
	return r.lowest("no output of floats was compared", func(o Output) (float64, string, bool) {
		if o.Errors == nil || math.IsNaN(o.Errors.DB()) {
			return 0, "", false
		}
		return o.Errors.DB(), o.noNumber(), true
	})
}

func (r *Result) lowestCosine() (float64, string) {
	return r.lowest("no output of floats was compared", func(o Output) (float64, string, bool) {
		switch {
		case o.Errors == nil || math.IsNaN(o.Errors.DB()):
			return 0, "", false
		case o.Errors.Cosine != nil:
			return *o.Errors.Cosine, "", true
		case o.Errors.Exact:
			return 1, "", true
		}
		return math.Inf(-1), o.noNumber(), true
	})
}

func (r *Result) lowestAgreement() (float64, string) {
	return r.lowest("no output has classes, or scores of them", func(o Output) (float64, string, bool) {
		if o.Agreement == nil {
			return 0, "", false
		}
		return *o.Agreement, "", true
	})
}

func (r *Result) accuracyDrop() (float64, string) {
	switch {
	case r.Skipped != "":
		return math.NaN(), "the models were not run: " + r.Skipped
	case r.Accuracy == nil || r.Accuracy.Before == nil:
		return math.NaN(), "no accuracy was measured: it needs samples with labels, and an output of classes or scores"
	}
	return *rounded(*r.Accuracy.Before-r.Accuracy.After, 9), "" // 0.99 - 0.98 is not quite 0.01
}

// noNumber is why an output has no finite SQNR.
func (o Output) noNumber() string {
	switch {
	case o.Errors.SQNR != nil:
		return ""
	case o.Errors.NonFinite > 0:
		return fmt.Sprintf("output %q: %d of %d elements are NaN or infinite in one model and not the same in the other", o.Name, o.Errors.NonFinite, o.Errors.Elements)
	case o.Errors.Exact:
		return "the outputs are equal"
	}
	return fmt.Sprintf("output %q: there is no signal to relate the error to", o.Name)
}

// lowest is the lowest figure of all outputs that have one.
func (r *Result) lowest(none string, of func(Output) (v float64, why string, ok bool)) (float64, string) {
	if r.Skipped != "" {
		return math.NaN(), "the models were not run: " + r.Skipped
	}
	low, reason, found := math.Inf(1), "", false
	for _, o := range r.Outputs {
		if v, why, ok := of(o); ok && (!found || v < low) {
			low, reason, found = v, why, true
		}
	}
	if !found {
		return math.NaN(), none
	}
	return low, reason
}
