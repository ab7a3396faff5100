package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/report/inspection"
)

// TestSparsityOfReports compares the sparsity of all weights with the zeros that inspect counts in both files.
func TestSparsityOfReports(t *testing.T) {
	for _, c := range [][]string{
		{"prune", "--method", "l1", "--amount", "0.6"}, {"prune", "--method", "channel"}, {"prune", "--method", "nm"},
	} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		source := "../../fixtures/cnn.onnx"
		must(t, append(c, "--no-verify", "--no-sync", "--quiet", "--report", "json", "--output", out, source))
		s := readReport(t, out).Totals.Sparsity
		if before := zeroFraction(t, source); math.Abs(s.All.Before-before) > 1e-5 {
			t.Errorf("%v: %v of all weights were zero, want %v", c, s.All.Before, before)
		}
		must(t, []string{"report", source, out, "--report", "json", "--report-dir", filepath.Dir(out)})
		if compared := readReport(t, filepath.Join(filepath.Dir(out),
			"out.vs.cnn.onnx")).Totals.Sparsity; *compared != *s {
			t.Errorf("%v: compared as two files, the sparsity is %+v, want %+v", c, compared, s)
		}
		if after := zeroFraction(t, out); math.Abs(s.All.After-after) > 1e-5 {
			t.Errorf("%v: %v of all weights are zero, want %v", c, s.All.After, after)
		}
	}
}

// zeroFraction is the fraction of zeros of the float tensors of a model.
func zeroFraction(t *testing.T, model string) float64 {
	t.Helper()
	code, text, stderr := call("--json", "inspect", "--values", model)
	if code != exitDone {
		t.Fatal(stderr)
	}
	var m inspection.Model
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	zeros, all := 0.0, 0.0
	for _, x := range m.Tensors {
		if x.DType != "float" || len(x.Shape) == 0 || x.Sparsity == nil {
			continue
		}
		n := float64(x.Bytes / 4)
		zeros += n * *x.Sparsity
		all += n
	}
	return zeros / all
}
