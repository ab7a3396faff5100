package verification

import (
	"fmt"
	"math"
)

// A Rule is the quantity of a gate. Names are those of flags.
type Rule struct {
	Name    string
	Maximum bool // the bound is a maximum, not a minimum
	Timed   bool // the quantity is measured by a clock, not a function of the models and the data
	// Value is the quantity; where it is infinite or NaN, why is the reason. NaN means not
	// measured, and is within no bound.
	Value func(*Result) (v float64, why string)
}

// Rules are the gates on the comparison of models. The worst output counts.
func Rules() []Rule {
	return []Rule{
		{Name: "min-sqnr", Value: (*Result).minSQNR},
		{Name: "min-cosine", Value: (*Result).minCosine},
		{Name: "min-agreement", Value: (*Result).minAgreement},
		{Name: "max-accuracy-drop", Value: (*Result).accuracyDrop, Maximum: true},
		{Name: "max-metric-drop", Value: (*Result).metricDrop, Maximum: true},
		{Name: "max-latency-ratio", Value: (*Result).latencyRatio, Maximum: true, Timed: true},
	}
}

func (r *Result) minSQNR() (float64, string) {
	return r.minimum("no float output was compared", func(o Output) (float64, string, bool) {
		if o.Sizes != nil && o.Sizes.Common != nil {
			return math.NaN(), o.noMeasure(), true
		}
		if o.Errors == nil || math.IsNaN(o.Errors.DB()) {
			return 0, "", false
		}
		return o.Errors.DB(), o.noSQNR(), true
	})
}

func (r *Result) minCosine() (float64, string) {
	return r.minimum("no float output was compared", func(o Output) (float64, string, bool) {
		switch {
		case o.Sizes != nil && o.Sizes.Common != nil:
			return math.NaN(), o.noMeasure(), true
		case o.Errors == nil || math.IsNaN(o.Errors.DB()):
			return 0, "", false
		case o.Errors.Cosine != nil:
			return *o.Errors.Cosine, "", true
		case o.Errors.Exact:
			return 1, "", true
		}
		return math.Inf(-1), o.noSQNR(), true
	})
}

func (r *Result) minAgreement() (float64, string) {
	return r.minimum("no output holds classes or scores", func(o Output) (float64, string, bool) {
		switch {
		case o.Agreement == nil && o.Sizes != nil && o.Sizes.Scores:
			return math.NaN(), o.noMeasure(), true
		case o.Agreement == nil:
			return 0, "", false
		}
		return *o.Agreement, "", true
	})
}

func (r *Result) accuracyDrop() (float64, string) {
	switch {
	case r.Skipped != "":
		return math.NaN(), "the models were not run: " + r.Skipped
	case r.Unmeasured != "":
		return math.NaN(), "accuracy was not measured: " + r.Unmeasured
	case r.Accuracy != nil && r.Accuracy.Before != nil && *r.Accuracy.Before == 0:
		return math.NaN(), NothingCorrect
	case r.Accuracy == nil || r.Accuracy.Before == nil:
		return math.NaN(), "accuracy needs samples with labels, and an output of classes or scores"
	}
	return math.Round(1e9*(*r.Accuracy.Before-r.Accuracy.After)) / 1e9, "" // 0.99 - 0.98 is not quite 0.01
}

// NothingCorrect is why an accuracy of 0 % is no reference: no model can be worse.
const NothingCorrect = "the first model classifies no sample correctly: check that labels are the numbers of its " +
	"classes, from 0, and the preprocessing"

func (r *Result) metricDrop() (float64, string) {
	switch {
	case r.Skipped != "":
		return math.NaN(), "the models were not run: " + r.Skipped
	case r.Metric == nil || r.Metric.Single:
		return math.NaN(), "it needs two models and a metric: --metric or --evaluator"
	case r.Metric.HigherIsBetter && r.Metric.Before != nil && *r.Metric.Before == 0 && r.Metric.Drop() == 0:
		return math.NaN(), r.Metric.Name + " is 0 in both models, which no model can miss: check the labels"
	case math.IsNaN(r.Metric.Drop()):
		return math.NaN(), r.Metric.Name + " is undefined: " + r.Metric.Text()
	}
	return math.Round(1e9*r.Metric.Drop()) / 1e9, ""
}

func (r *Result) latencyRatio() (float64, string) {
	switch {
	case r.Skipped != "":
		return math.NaN(), "the models were not run: " + r.Skipped
	case r.Latency == nil || r.Latency.Before == 0:
		return math.NaN(), "latency was not measured"
	}
	return r.Latency.After / r.Latency.Before, ""
}

// noNumber is why an output has no finite SQNR.
func (o Output) noSQNR() string {
	switch {
	case o.Errors.SQNR != nil:
		return ""
	case o.Errors.NonFinite > 0:
		return fmt.Sprintf(
			"output %q: %d of %d elements are NaN or infinite and differ between the models",
			o.Name,
			o.Errors.NonFinite,
			o.Errors.Elements,
		)
	case o.Errors.Exact:
		return "the outputs are equal"
	}
	return fmt.Sprintf("output %q: the reference is zero", o.Name)
}

// Lost is why a result fails whatever the gates: an output has NaN or infinities where that of the source is finite;
// empty if none has.
func (r *Result) Lost() string {
	for _, o := range r.Outputs {
		e := o.Errors
		if o.Sizes != nil {
			e = o.Sizes.Common
		}
		if e != nil && e.Lost > 0 {
			return fmt.Sprintf(
				"output %q: %d of %d elements are NaN or infinite, and finite in the source",
				o.Name,
				e.Lost,
				e.Elements,
			)
		}
	}
	return ""
}

// minimum is the lowest value over the outputs that have one. An output whose value is not known makes it unknown.
func (r *Result) minimum(none string, of func(Output) (v float64, why string, ok bool)) (float64, string) {
	if r.Skipped != "" {
		return math.NaN(), "the models were not run: " + r.Skipped
	}
	low, reason, found := math.Inf(1), "", false
	for _, o := range r.Outputs {
		v, why, ok := of(o)
		if ok && math.IsNaN(v) {
			return v, why
		}
		if ok && (!found || v < low) {
			low, reason, found = v, why, true
		}
	}
	if !found {
		return math.NaN(), none
	}
	return low, reason
}
