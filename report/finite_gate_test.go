package report

import (
	"testing"

	"github.com/mcompress/mcompress/report/verification"
)

// A result that is not finite where the source is finite fails without any gate.
func TestLostNumbersFail(t *testing.T) {
	for lost, want := range map[int64]bool{0: true, 1: false} {
		v := &verification.Result{Outputs: []verification.Output{{Name: "y",
			Errors: &verification.Errors{Elements: 8, NonFinite: 1, Lost: lost}}}}
		gates, err := EvaluateGates(v, nil)
		if err != nil || Passed(gates) != want {
			t.Errorf("%d elements: %+v, %v", lost, gates, err)
		}
	}
}
