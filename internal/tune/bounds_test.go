package tune

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// Gates on outputs are evaluated with two standard errors more noise, or less agreement.
func TestGatesOnOutputsHaveAMargin(t *testing.T) {
	sqnr, cosine, agreement := 20.5, 0.995, 0.9
	r := &verification.Result{
		Data: &verification.Data{Samples: 100},
		Outputs: []verification.Output{{Errors: &verification.Errors{SQNR: &sqnr, Cosine: &cosine, Deviation: 0.1},
			Agreement: &agreement}},
	}
	worse := withMargin(r).Outputs[0]
	if got, want := *worse.Errors.SQNR, 20.5-10*math.Log10(1.2); math.Abs(got-want) > 1e-12 {
		t.Errorf("SQNR %v, want %v", got, want)
	}
	if got := *worse.Errors.Cosine; math.Abs(got-0.994) > 1e-12 {
		t.Errorf("cosine %v, want 0.994", got)
	}
	if got := *worse.Agreement; math.Abs(got-0.84) > 1e-12 {
		t.Errorf("agreement %v, want 0.84", got)
	}
	if sqnr != 20.5 || cosine != 0.995 || agreement != 0.9 {
		t.Error("the result has changed")
	}
	for bound, want := range map[float64]bool{19: true, 20: false} {
		for _, bytes := range []int64{0, 1 << 20} { // a goal of size has no margin
			tuner := &tuner{Options: Options{Gates: []report.Limit{{Name: "min-sqnr", Bound: bound}}, Bytes: bytes}}
			if got, err := tuner.holdsWithMargin(r); err != nil || got != (want || bytes > 0) {
				t.Errorf("bound %v, %d bytes: got %v, %v", bound, bytes, got, err)
			}
		}
	}
}
