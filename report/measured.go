package report

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/report/verification"
)

// A quantity is a measured figure of the result.
type quantity struct {
	ID            string // such as accuracy, f1, sqnr_db
	Name          string // in words, with the unit
	Output        string // that it is about; empty for a figure of the model
	Before, After *float64
}

// measured are the finite figures of the verification: accuracy, the metric, and the errors of each output.
func measured(v *verification.Result) []quantity {
	if v == nil || v.Skipped != "" {
		return nil
	}
	var all []quantity
	if a := v.Accuracy; a != nil {
		all = append(all, quantity{ID: "accuracy", Name: "accuracy", Before: a.Before, After: &a.After})
	}
	if m := v.Metric; m != nil {
		id, _, _ := strings.Cut(m.Name, ":")
		all = append(all, quantity{ID: id, Name: m.Name, Before: m.Before, After: m.After})
	}
	for _, o := range v.Outputs {
		all = append(all, errorsOf(o)...)
	}
	return slices.DeleteFunc(all, func(q quantity) bool { return q.After == nil })
}

// errorsOf are the errors of an output.
func errorsOf(o verification.Output) []quantity {
	in := " of output " + o.Name
	all := []quantity{{ID: "agreement", Name: "top-1 agreement" + in, Output: o.Name, After: o.Agreement}}
	if o.Errors == nil {
		all[0].Name = "equal elements" + in
		return all
	}
	return append(all,
		quantity{ID: "sqnr_db", Name: "SQNR in dB" + in, Output: o.Name, After: o.Errors.SQNR},
		quantity{ID: "cosine", Name: "cosine similarity" + in, Output: o.Name, After: o.Errors.Cosine},
		quantity{ID: "max_abs_error", Name: "maximum absolute error" + in, Output: o.Name, After: o.Errors.Max},
	)
}
