package cli

import (
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

func TestTerminalHintsAreRelevant(t *testing.T) {
	ran, skipped := &verification.Result{}, &verification.Result{Skipped: "no operator"}
	for _, c := range []struct {
		name         string
		verification *verification.Result
		target       *pass.Target
		saturated    bool
		want         int
	}{
		{"nothing run", nil, nil, true, 0},
		{"not run", skipped, nil, true, 0},
		{"verified without saturation", ran, nil, false, 0},
		{"verified by ONNX Runtime on a CPU without VNNI", ran, nil, true, 1},
		{"a target that options overrule", nil, &pass.Target{}, false, 1},
	} {
		r := &report.Report{Hints: []string{"products may saturate"}, Verification: c.verification, Target: c.target, Coverage: report.Coverage{ChangedBytes: 1}}
		if got := (Batch{of("m.onnx", &mcompress.Result{Report: r}, nil)}).terminalHints(c.saturated); len(got) != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}
