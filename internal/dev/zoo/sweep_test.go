package main

import (
	"strings"
	"testing"
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
