package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

func TestBatchLineHasOutputSQNRAndGates(t *testing.T) {
	good, bad, open := report.Gate{Name: "max-size", Held: true}, report.Gate{Name: "min-sqnr"}, report.Gate{Name: "min-cosine", Open: true}
	ran := func(o ...verification.Output) *verification.Result { return &verification.Result{Outputs: o} }
	near := verification.Output{Errors: &verification.Errors{SQNR: num(31.26), Elements: 4}}
	for _, c := range []struct {
		v            *verification.Result
		gates        []report.Gate
		sqnr, passed string
	}{
		{nil, nil, "", ""},
		{&verification.Result{Skipped: "an operator is missing"}, []report.Gate{bad, good}, "", "min-sqnr failed"},
		{ran(near, verification.Output{Errors: &verification.Errors{Exact: true, Elements: 4}}), []report.Gate{good, open}, "31.3 dB", "passed"},
		{ran(verification.Output{Errors: &verification.Errors{Exact: true, Elements: 4}}), []report.Gate{open}, "exact", ""},
		{ran(verification.Output{Agreement: num(0.25)}), []report.Gate{bad, {Name: "min-ratio"}}, "equal elements 25 %", "min-sqnr, min-ratio failed"},
		{ran(), nil, "", ""},
	} {
		line := of("m.onnx", &mcompress.Result{Output: "o.onnx", Report: &report.Report{Verification: c.v, Gates: c.gates}}, nil).line(Style{})
		if got := line[6:8]; got[0] != c.sqnr || got[1] != c.passed {
			t.Errorf("got %q, want %q and %q", got, c.sqnr, c.passed)
		}
	}
}

// Models that failed have the same columns.
func TestEveryLineOfABatchHasAllColumns(t *testing.T) {
	b := Batch{of("a.onnx", nil, errors.New("it is not there")), of("b.onnx", &mcompress.Result{Report: &report.Report{}}, nil)}
	if n, m := len(b[0].line(Style{})), len(b[1].line(Style{})); n != m {
		t.Errorf("%d columns and %d", n, m)
	}
	var text strings.Builder
	if err := b.Text(&text, Style{}, false); err != nil || !strings.HasPrefix(text.String(), "model ") {
		t.Errorf("%q, %v", text.String(), err)
	}
}

func TestBatchOnRandomInputsHasACaveat(t *testing.T) {
	for generated, want := range map[bool]bool{true: true, false: false} {
		v := &verification.Result{Data: &verification.Data{Samples: 1, Generated: generated}}
		o := of("b.onnx", &mcompress.Result{Report: &report.Report{Verification: v}}, nil)
		var text strings.Builder
		if err := (Batch{o, o}).Text(&text, Style{}, false); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), "random inputs are no evidence of accuracy\n"); got != want {
			t.Errorf("generated %v: got %q", generated, text.String())
		}
	}
}

// of is the outcome of a model.
func of(model string, r *mcompress.Result, err error) Outcome {
	return Outcome{Outcome: mcompress.Outcome{Model: model, Result: r, Err: err}}
}
