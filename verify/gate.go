package verify

import "math"

// A Rule is what one gate looks at. Names are those of flags.
type Rule struct {
	Name   string
	Value  func(*Result) (v float64, ok bool) // ok is false where the result does not tell
	AtMost bool                               // the bound is the most there may be, not the least
	Unit   string
}

// Rules are the gates on what a comparison says. The worst output decides.
func Rules() []Rule {
	return []Rule{
		{Name: "min-sqnr", Value: (*Result).lowestSQNR, Unit: "dB"},
		{Name: "min-cosine", Value: (*Result).lowestCosine},
		{Name: "min-agreement", Value: (*Result).lowestAgreement},
		{Name: "max-accuracy-drop", Value: (*Result).accuracyDrop, AtMost: true},
	}
}

func (r *Result) lowestSQNR() (float64, bool) {
	return r.lowest(func(o Output) (float64, bool) {
		if o.Errors == nil {
			return 0, false
		}
		return float64(o.Errors.SQNR), true
	})
}

func (r *Result) lowestCosine() (float64, bool) {
	return r.lowest(func(o Output) (float64, bool) {
		if o.Errors == nil {
			return 0, false
		}
		return o.Errors.Cosine, true
	})
}

func (r *Result) lowestAgreement() (float64, bool) {
	return r.lowest(func(o Output) (float64, bool) {
		if o.Agreement == nil {
			return 0, false
		}
		return *o.Agreement, true
	})
}

func (r *Result) accuracyDrop() (float64, bool) {
	if r.Accuracy == nil {
		return 0, false
	}
	return r.Accuracy.Before - r.Accuracy.After, true
}

func (r *Result) lowest(of func(Output) (float64, bool)) (float64, bool) {
	low, found := math.Inf(1), false
	for _, o := range r.Outputs {
		if v, ok := of(o); ok {
			low, found = min(low, v), true
		}
	}
	return low, found
}
