package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

func TestInconsistencies(t *testing.T) {
	build := func() *Report {
		sqnr := 20.123
		in := Input{
			Errors: true, Gates: []Limit{{"min-ratio", 0.1}, {"require-coverage", 0.5}, {"max-size", 1}, {"min-sqnr", 20.1}},
			Verification: &verification.Result{Outputs: []verification.Output{{Errors: &verification.Errors{SQNR: &sqnr}}}},
		}
		r := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: in}).build(t)
		var b bytes.Buffer
		if err := r.JSON(&b); err != nil {
			t.Fatal(err)
		}
		read, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	if lines := build().Inconsistencies(); len(lines) > 0 {
		t.Fatalf("got %q", lines)
	}
	other := 25.0
	for want, edit := range map[string]func(*Report){
		"totals.file_bytes": func(r *Report) { r.Totals.FileBytes.After++ },
		"totals.ratio":      func(r *Report) { r.Totals.Ratio += 0.0001 },
		"the reference t.onnx is none": func(r *Report) {
			r.Reference = &Side{Files: []File{{Name: "t.onnx"}}}
		},
		"coverage is":                                 func(r *Report) { r.Weights = r.Weights[:0] },
		"the verdict is ":                             func(r *Report) { r.Verdict.Evidence = "real data" },
		"gate min-ratio: recorded as failed":          func(r *Report) { r.Gates[0].Held = false },
		"gate max-size: recorded as passed":           func(r *Report) { r.Gates[2].Held = true },
		"gate min-sqnr: the value is 25 dB":           func(r *Report) { r.Gates[3].Value = &other },
		"gate min-sqnr: recorded as evaluated":        func(r *Report) { r.Verification = nil },
		"gate min-sqnr: recorded as without a value":  func(r *Report) { r.Gates[3].Value = nil },
		"gate min-cosines: not known to this version": func(r *Report) { r.Gates[3].Name = "min-cosines" },
		"gate finite: not recorded, output":           func(r *Report) { r.Verification.Outputs[0].Errors.Lost = 3 },
		"gate finite: recorded, but": func(r *Report) {
			r.Gates = append(r.Gates, Gate{Name: "finite", Reason: "lost"})
		},
	} {
		r := build()
		edit(r)
		if lines := r.Inconsistencies(); len(lines) == 0 || !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("got %q, want %q", lines, want)
		}
	}
}

// The gate that nobody asked for is consistent in the report of a result that fails it.
func TestFiniteGateIsConsistent(t *testing.T) {
	in := Input{Errors: true,
		Verification: &verification.Result{Outputs: []verification.Output{{Name: "y",
			Errors: &verification.Errors{Elements: 8, NonFinite: 3, Lost: 3}}}}}
	r := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: in}).build(t)
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	read, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if lines := read.Inconsistencies(); len(lines) > 0 || len(read.Gates) != 1 || read.Passed() {
		t.Errorf("%v, gates %v", lines, read.Gates)
	}
	if got := read.Gates[0].Failure(); got != `output "y": 3 of 8 elements are NaN or infinite, and finite in the source` {
		t.Error(got)
	}
}
