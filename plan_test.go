package mcompress_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/quantize"
)

// FuzzPlan opens folders with a plan of any text. What is accepted is the same after it is written, writes to its folder
// only, and runs no program that nobody allowed.
func FuzzPlan(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "plan")
	r := mcompress.Request{Models: []string{fixture("mlp.onnx")}, Steps: []mcompress.Step{quantize.WeightInt8{}}}
	p, err := r.Plan(f.Context(), dir, 2)
	if err != nil {
		f.Fatal(err)
	}
	if err := p.Write(f.Context()); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(dir, "plan.json")
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	hostile.Seed(f, hostile.Some(hostile.JSON(string(text)), 300), string(text))
	digest := regexp.MustCompile(`"digest": "[0-9a-f]{64}"`)
	f.Fuzz(func(t *testing.T, text []byte) {
		// Whoever writes a plan can compute its digest.
		var sealed mcompress.Plan
		if json.Unmarshal(text, &sealed) == nil {
			sum, err := mcompress.PlanDigest(&sealed)
			if err != nil {
				t.Fatal(err)
			}
			text = digest.ReplaceAll(text, []byte(`"digest": "`+sum+`"`))
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		oracle.Linear.Check(t, len(text), func() { openPlan(t, dir) })
	})
}

func openPlan(t *testing.T, dir string) {
	p, err := mcompress.OpenPlan(t.Context(), dir)
	var field *mcompress.FieldError
	if err != nil {
		if !errors.As(err, &field) {
			t.Errorf("%v is no error of the plan", err)
		}
		return
	}
	q := p.Request
	if p.Folder() != dir || q.Output != "" || q.Reports.Dir != "" || q.ExportDir != "" || q.Push != "" || q.Verification.WeightCache != "" {
		t.Errorf("%+v writes elsewhere", p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again mcompress.Plan
	if err := json.Unmarshal(text, &again); err != nil {
		t.Errorf("%s is no plan: %v", text, err)
	}
}
