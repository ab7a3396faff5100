package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/report"
)

// Each model has a line, with what came of running it where it was run.
func TestALineSaysWhatCameOfRunningAModel(t *testing.T) {
	good, bad, open := report.Gate{Name: "max-size", Held: true}, report.Gate{Name: "min-sqnr"}, report.Gate{Name: "min-cosine", Open: true}
	ran := func(o ...verify.Output) *verify.Result { return &verify.Result{Outputs: o} }
	near := verify.Output{Errors: &verify.Errors{SQNR: num(31.26), Elements: 4}}
	for _, c := range []struct {
		v              *verify.Result
		gates          []report.Gate
		outputs, judge string
	}{
		{nil, nil, "", ""},
		{&verify.Result{Skipped: "an operator is missing"}, []report.Gate{bad, good}, "", "min-sqnr did not hold"},
		{ran(near, verify.Output{Errors: &verify.Errors{Exact: true, Elements: 4}}), []report.Gate{good, open}, "31.3 dB", "held"},
		{ran(verify.Output{Errors: &verify.Errors{Exact: true, Elements: 4}}), []report.Gate{open}, "exact", ""},
		{ran(verify.Output{Agreement: num(0.25)}), []report.Gate{bad, {Name: "min-ratio"}}, "25.00 % agree", "min-sqnr, min-ratio did not hold"},
		{ran(), nil, "", ""},
	} {
		line := Outcome{Model: "m.onnx", Result: &job.Result{Output: "o.onnx", Report: &report.Report{Verification: c.v, Gates: c.gates}}}.line(Style{})
		if got := line[6:8]; got[0] != c.outputs || got[1] != c.judge {
			t.Errorf("got %q, want %q and %q", got, c.outputs, c.judge)
		}
	}
}

// The columns are the same for models that failed.
func TestEveryLineOfABatchHasAllColumns(t *testing.T) {
	b := Batch{{Model: "a.onnx", Err: errors.New("it is not there")}, {Model: "b.onnx", Result: &job.Result{Report: &report.Report{}}}}
	if n, m := len(b[0].line(Style{})), len(b[1].line(Style{})); n != m {
		t.Errorf("%d columns and %d", n, m)
	}
	var text strings.Builder
	if err := b.Text(&text, Style{}, false); err != nil || !strings.HasPrefix(text.String(), "model ") {
		t.Errorf("%q, %v", text.String(), err)
	}
}
