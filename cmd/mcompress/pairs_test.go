package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report"
)

// TestPairsOfMethods runs each pair of methods as two commands and as one recipe: a file that becomes smaller has
// coverage, and the parameters of the second command's source are those of the first one's result.
func TestPairsOfMethods(t *testing.T) {
	dir := prepared(t, "pairs")
	source := compressed(t, dir, []string{"prune", "--method", "l1", "--amount", "0.8"},
		[]string{"../../fixtures/mlp.onnx"})[0]
	steps := []string{"l1", "lowrank", "dynamic-int8", "weight-int4", "static-int8", "auto"}
	for _, first := range steps {
		one := pairResult(t, dir, source, first)
		before := readReport(t, one)
		for _, second := range steps {
			result := pairResult(t, dir, one, second)
			two := readReport(t, result)
			covers(t, first+", then "+second, two)
			if a, b := before.Totals.Parameters.After, two.Totals.Parameters.Before; a != b {
				t.Errorf("%s: %d parameters, then %s reads %d", first, a, second, b)
			}
			if got := comparison(t, one, result).Totals; got.LoadedBytes != (report.Change{Before: before.Totals.LoadedBytes.After, After: two.Totals.LoadedBytes.After}) {
				t.Errorf("%s, then %s: compared as files, %+v bytes are loaded; the runs that wrote them have %d and %d", first, second, got.LoadedBytes, before.Totals.LoadedBytes.After, two.Totals.LoadedBytes.After)
			}
			recipe := filepath.Join(dir, "recipe.yaml")
			if err := os.WriteFile(recipe, fmt.Appendf(nil, "steps:\n  - method: %s\n  - method: %s\n", first,
				second), 0o644); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "both.onnx")
			if code, _, _ := call("apply", recipe, source, "--no-verify", "--no-sync", "--quiet", "--digest", "none",
				"--report", "json", "--output", out); code != exitDone {
				continue // not in this order
			}
			both := readReport(t, out)
			covers(t, "recipe "+first+", "+second, both)
			if a, b := both.Totals.Parameters.After, two.Totals.Parameters.After; a != b {
				t.Errorf("recipe %s, %s: %d parameters, %d by two commands", first, second, a, b)
			}
		}
	}
}

// pairResult runs one method.
func pairResult(t *testing.T, dir, model, method string) string {
	t.Helper()
	for _, m := range methods {
		if m.Name == method {
			out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(model), ".onnx")+"."+method+".onnx")
			must(t, append(chosen(m), "--no-verify", "--no-sync", "--quiet", "--digest", "none", "--report", "json",
				"--output", out, model))
			return out
		}
	}
	t.Fatalf("no method %s", method)
	return ""
}

// comparison is the report that compares two files.
func comparison(t *testing.T, a, b string) *report.Report {
	t.Helper()
	dir := t.TempDir()
	must(t, []string{"report", "--quiet", "--digest", "none", "--report", "json", "--report-dir", dir, a, b})
	name := strings.TrimSuffix(filepath.Base(b), ".onnx") + ".vs." + filepath.Base(a)
	return readReport(t, filepath.Join(dir, name))
}

// covers requires that coverage has the weights that changed.
func covers(t *testing.T, name string, r *report.Report) {
	t.Helper()
	changed, counted := int64(0), int64(0)
	for _, w := range r.Weights {
		if w.Changed {
			changed += w.Bytes.Before
			if w.Counted {
				counted += w.Bytes.Before
			}
		}
	}
	if counted < changed*99/100 || r.Coverage.ChangedBytes != counted {
		t.Errorf("%s: %d bytes of weights changed; coverage has %d of %d", name, changed, r.Coverage.ChangedBytes,
			r.Coverage.CountedBytes)
	}
	if r.Totals.Ratio > 1.1 && r.Coverage.Fraction < 0.5 {
		t.Errorf("%s: %.2f times smaller, coverage %v", name, r.Totals.Ratio, r.Coverage.Fraction)
	}
}
