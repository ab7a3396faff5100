package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

func num(x float64) *float64 { return &x }

func textOf(t *testing.T, v Verification) string {
	t.Helper()
	var b strings.Builder
	if err := v.Text(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestVerificationText(t *testing.T) {
	r := &verification.Result{
		Backend: "the embedded engine", Data: &verification.Data{Samples: 500, Batch: 10},
		Outputs: []verification.Output{
			{Name: "scores", Errors: &verification.Errors{SQNR: num(31.26), Cosine: num(0.9996), Max: num(0.25), Elements: 10}, Agreement: num(0.985)},
			{Name: "boxes", Errors: &verification.Errors{NonFinite: 3, Elements: 40}},
			{Name: "class", Agreement: num(1)},
		},
		Accuracy:    &verification.Accuracy{Before: num(0.9894), After: 0.9886},
		Breaks:      &verification.Break{Value: "fc", Node: "n1", Op: "Gemm", From: num(60), To: num(31)},
		Layers:      []verification.Layer{{Value: "conv", Op: "Conv", Errors: verification.Errors{Exact: true, Elements: 1}}, {Value: "fc", Op: "Gemm", Errors: verification.Errors{SQNR: num(31), Cosine: num(0.5), Max: num(1), Elements: 1}}},
		Activations: &verification.Activations{Before: 2048, After: 1024},
	}
	got := textOf(t, Verification{A: "a.onnx", B: "b.onnx", Result: r, Gates: []report.Gate{{Name: "min-sqnr", Bound: 40, Value: num(31.26)}}})
	want := `a.onnx → b.onnx
  data              500 samples, batch size 10; run by the embedded engine
  outputs           scores: SQNR 31.3 dB · cosine 0.99960 · max abs error 0.25 · top-1 agreement 98.5 %
                    boxes: SQNR not finite · NaN or infinite: 3 of 40 elements differ
                    class: equal elements 100 %
  accuracy          98.94 % → 98.86 % (-0.08 points)
  largest drop      at fc (Gemm n1): SQNR 60.0 dB → 31.0 dB
  peak activations  2.0 KiB → 1.0 KiB
  gates             min-sqnr ≥ 40 dB failed: 31.26 dB

  the 1 of 2 layers with the lowest SQNR
  value  operator     SQNR    cosine  max abs error
  fc     Gemm      31.0 dB  0.500000              1
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRecordedOutputsText(t *testing.T) {
	r := &verification.Result{Data: &verification.Data{Samples: 1}, Outputs: []verification.Output{{Name: "y"}}, Beyond: "sample 0: it is off"}
	if got := textOf(t, Verification{A: "a.onnx", Result: r}); !strings.Contains(got, "tolerance  exceeded: sample 0: it is off\n") {
		t.Errorf("got %q", got)
	}
	r.Beyond = ""
	if got := textOf(t, Verification{A: "a.onnx", Result: r}); !strings.Contains(got, "tolerance  met by all recorded outputs\n") {
		t.Errorf("got %q", got)
	}
}

func TestManyOutputsAreShortenedInTextOnly(t *testing.T) {
	r := &verification.Result{Data: &verification.Data{Samples: 1}}
	for i := range maxOutputs + 3 {
		r.Outputs = append(r.Outputs, verification.Output{Name: fmt.Sprint("y", i), Agreement: num(1)})
	}
	v := Verification{A: "a.onnx", B: "b.onnx", Result: r}
	if got := textOf(t, v); !strings.Contains(got, "and 3 more, see --json") || strings.Contains(got, "y21") {
		t.Errorf("got %q", got)
	}
	var b strings.Builder
	if err := v.JSON(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	var back Verification
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || len(back.Result.Outputs) != maxOutputs+3 {
		t.Errorf("%d outputs in %s, %v", len(back.Result.Outputs), b.String(), err)
	}
}

func TestASummaryNamesTheWorstOutput(t *testing.T) {
	r := &verification.Result{Data: &verification.Data{Samples: 8, Generated: true, Seed: 2}, Outputs: []verification.Output{
		{Name: "a", Errors: &verification.Errors{Exact: true, Elements: 4}},
		{Name: "b", Errors: &verification.Errors{SQNR: num(20), Elements: 4}, Agreement: num(0.5)},
	}}
	if got, want := comparison(Style{}, r), "worst of 2 outputs (b) SQNR 20.0 dB · top-1 agreement 50 % (8 random samples, seed 2)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
