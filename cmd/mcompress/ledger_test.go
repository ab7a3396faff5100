package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// sampledModels is the number of shared models that TestLedger checks per method; each method has others.
const sampledModels = 2

// TestLedger is the test of all methods that no constant is left out of the ledger: each one of rank 1 or more, in
// every scope, has exactly one row; a sixth of the fixtures for each method. Scales and zero points may share the row
// of their quantized weight.
func TestLedger(t *testing.T) {
	fixtures := conform.Fixtures(t)
	fixtures = append(fixtures, quantizedFixtures(t)...)
	shared := conform.RealModels(t)
	for i, m := range methods {
		if m.Stage == pass.Train {
			continue // requires samples
		}
		t.Run(m.Name, func(t *testing.T) {
			models := slices.Clone(conform.Part(i, 6, fixtures))
			for k := range min(sampledModels, len(shared)) {
				models = append(models, shared[(i*sampledModels+k)%len(shared)])
			}
			for _, model := range models {
				checkLedger(t, m, model)
			}
		})
	}
}

// quantizedFixtures are fixtures in forms that other methods have to account for.
func quantizedFixtures(t *testing.T) []string {
	mlp := slices.DeleteFunc(conform.Fixtures(t), func(p string) bool { return filepath.Base(p) != "mlp.onnx" })
	var list []string
	for _, args := range [][]string{
		{"quantize", "--method", "weight-int4", "--form", "matmulnbits"},
		{"quantize", "--method", "weight-int4"},
		{"quantize", "--method", "dynamic-int8"},
		{"quantize", "--method", "static-int8"},
	} {
		list = append(list, compressed(t, prepared(t, args[2]+args[len(args)-1]), args, mlp)...)
	}
	return list
}

func checkLedger(t *testing.T, m *pass.Method, model string) {
	t.Helper()
	code, stdout, stderr := call(append(chosen(m), "--dry-run", "--json", "--no-verify", model)...)
	if code != exitDone {
		t.Errorf("%s: exit code %d\n%s", model, code, stderr)
		return
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	ledgerIsComplete(t, &r, model)
}

// ledgerIsComplete requires exactly one row of the ledger for each constant of rank 1 or more of the model.
func ledgerIsComplete(t *testing.T, r *report.Report, model string) {
	t.Helper()
	rows := map[[2]string]int{}
	for _, row := range r.Ledger {
		for _, reason := range append(row.Notes, row.Reason) {
			checkReason(t, model, reason)
		}
		if row.Status == pass.Skipped.String() && row.Reason.Code == "" {
			t.Errorf("%s: %q is skipped without a reason", model, row.Tensor)
		}
		if row.Status != pass.Noted.String() {
			rows[[2]string{row.Scope, row.Tensor}]++
		}
	}
	f, err := onnx.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	count := func(v *ir.Value) int { return rows[[2]string{pass.Scope(v.Graph()), v.Name}] }
	for g := range f.Model.Graphs() {
		for _, v := range g.Consts() {
			if len(v.Const.Shape) == 0 || v.Ambiguous {
				continue
			}
			n := count(v)
			if n == 0 && pass.IsQuantizationParam(v) {
				continue // the row of the weight is checked like any other
			}
			if n != 1 {
				t.Errorf("%s: %d rows for %s %q in %q", model, n, v.Const.Spec, v.Name, pass.Scope(g))
			}
		}
	}
}

// sentence matches details that are not noun phrases, names or figures.
var sentence = regexp.MustCompile(`^(it|its|they|the) |\.$|\b(is|are|was|were|has|have|does|do|did|not known|cannot|can|needs?|gives?|makes?|reads?|holds?|stays?|would|which)\b`)

// checkReason requires a known reason whose detail is data, no sentence. Names of the model in it may be of any form.
func checkReason(t *testing.T, model string, r report.Reason) {
	t.Helper()
	if !r.None() && !slices.Contains(pass.Codes(), r.Code) {
		t.Errorf("%s: pass.Codes lacks %q", model, r.Code)
	}
	if sentence.MatchString(r.Detail) {
		t.Errorf("%s: %s: %q is a sentence, no detail", model, r.Code, r.Detail)
	}
	if r.Operator == "" && strings.Contains(report.Reason{Code: r.Code, Operator: "OPERATOR"}.String(), "OPERATOR") {
		t.Errorf("%s: %s: no node", model, r.Code)
	}
}
