package main

import (
	"math"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// Outputs within verify's tolerances are no finding whatever their SQNR, and those outside of them if it is high.
func TestRecordedOutputs(t *testing.T) {
	float := func(db string) string {
		return `{"verification":{"outputs":[{"name":"y","errors":{"exact":false,"sqnr_db":` + db + `,"elements":4}}]}}`
	}
	const integers = `{"verification":{"outputs":[{"name":"y","agreement":0.5}]}}`
	for _, c := range []struct {
		name, stdout string
		code         int
		finding      bool
	}{
		{"within the tolerances, SQNR of tiny numbers", float("9.7"), 0, false},
		{"outside of them, high SQNR", float("40"), 3, false},
		{"outside of them, low SQNR", float("9.7"), 3, true},
		{"equal integers", integers, 0, false},
		{"other integers", integers, 3, true},
		{"no JSON", "panic", 3, true},
	} {
		r := result{Finding: "exit code 3"}
		if c.code == 0 {
			r.Finding = ""
		}
		if r.evaluate(run{code: c.code, stdout: c.stdout}); (r.Finding != "") != c.finding {
			t.Errorf("%s: %q", c.name, r.Finding)
		}
	}
}

// A case that could not run, or ended with an error, runs again with another program; one with a result does not.
func TestResultsOfAnotherProgram(t *testing.T) {
	s := &sweep{version: "new"}
	for _, c := range []struct {
		r    result
		want bool
	}{
		{result{Program: "old"}, true},
		{result{Program: "new", Code: 4, Message: "not supported"}, true},
		{result{Program: "old", Code: 4, Message: "not supported"}, false},
		{result{Program: "old", Message: "not run: no samples"}, false},
		{result{Program: "new", Finding: "crash"}, false},
	} {
		if got := s.valid(c.r); got != c.want {
			t.Errorf("%+v: valid %v", c.r, got)
		}
	}
}

// Errors with exit code 4 name what is unsupported.
func TestRefusals(t *testing.T) {
	for message, want := range map[string]bool{
		`node "n" (X): operator of opset 1 is not supported by the engine`: true,
		"layers: no-repeated-layers: the model has no repeated layers":     true,
		"something went wrong": false,
	} {
		r := run{code: 4, stderr: "progress\n" + message}
		if finding := r.refusal(); (finding == "") != want || !want && !strings.Contains(finding, "name") {
			t.Errorf("%s: %q", message, finding)
		}
	}
}

// Results are found by the names of cases.
func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range allCases() {
		if seen[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		seen[c.name] = true
	}
}

// An output that ONNX Runtime computes with another error than the report states is a finding; differences of tiny
// errors are none.
func TestOutputsAgreeWithReports(t *testing.T) {
	db := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		stated verification.Errors
		got    float64
		agrees bool
	}{
		{verification.Errors{SQNR: db(20)}, 18, true},
		{verification.Errors{SQNR: db(20)}, 16.9, false},
		{verification.Errors{SQNR: db(20)}, 23.1, false},
		{verification.Errors{SQNR: db(70)}, 41, true},
		{verification.Errors{SQNR: db(70)}, 30, false},
		{verification.Errors{Exact: true, Elements: 8}, math.Inf(1), true},
		{verification.Errors{Exact: true, Elements: 8}, 20, false},
		{verification.Errors{}, -5, true}, // without signal no ratio is stated
	} {
		stated := &report.Report{Verification: &verification.Result{Outputs: []verification.Output{{Name: "other"},
			{Name: "y", Errors: &c.stated}}}}
		if why := agrees(stated, []conform.Output{{Name: "y", SQNR: conform.Float(c.got)}},
			tolerance); (why == "") != c.agrees {
			t.Errorf("%+v in the report, %v dB: %q", c.stated, c.got, why)
		}
	}
}
