package mcompress_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// TestSearchIsPushed is quantize --auto … --push: it finds the steps, writes the result with its reports and pushes it.
func TestSearchIsPushed(t *testing.T) {
	dir := t.TempDir()
	stages := map[string]bool{}
	outcomes, err := mcompress.Request{
		Models:  []string{fixture("mlp.onnx")},
		Output:  filepath.Join(dir, "mlp.onnx"),
		Search:  &mcompress.Search{Candidates: []string{"weight-int8", "weight-int4:block=32"}},
		Data:    mcompress.Data{Path: fixture("digits_test.npz"), Limit: 40},
		Gates:   []mcompress.Gate{mcompress.MinSQNR(20)},
		Reports: mcompress.Reports{Formats: []string{"json"}},
		Push:    "dir:" + filepath.Join(dir, "models"),
		Limits:  mcompress.Limits{Workers: 1},
		Events:  mcompress.Events{Progress: func(p mcompress.Progress) { stages[p.Stage] = true }},
	}.RunAll(t.Context())
	if err != nil || len(outcomes) != 1 || outcomes[0].Error() != nil {
		t.Fatalf("got %+v, %v", outcomes, err)
	}
	r := outcomes[0].Result.Report
	if r.Search == nil || !r.Passed() || r.Totals.FileBytes.After >= r.Totals.FileBytes.Before {
		t.Errorf("search %v, %+v", r.Search != nil, r.Totals.FileBytes)
	}
	p := outcomes[0].Pushed
	if p == nil || !slices.ContainsFunc(p.Files, func(f registry.File) bool { return f.Role == registry.ReportJSON }) {
		t.Fatalf("pushed %+v", p)
	}
	if _, err := os.Stat(filepath.Join(dir, "models", "mlp.onnx")); err != nil {
		t.Error(err)
	}
	if !stages[mcompress.StageSearch] || !stages[mcompress.StageWrite] {
		t.Errorf("stages %v", stages)
	}
}

// TestListsOfModels compresses the parts of a list, with an index of all, and skips results that are there.
func TestListsOfModels(t *testing.T) {
	content := map[string][]byte{
		"a/one.onnx": read(t, fixture("mlp.onnx")), "b/two.onnx": read(t, fixture("cnn.onnx")),
		"b/bad.onnx": read(t, fixture("digits_test.npz")),
	}
	t.Chdir(t.TempDir())
	for name, text := range content {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := mcompress.Request{
		Models: []string{"a/one.onnx", "b/bad.onnx", "b/two.onnx"}, Output: "out/",
		Steps:   []mcompress.Step{quantize.WeightInt8{}},
		Reports: mcompress.Reports{Formats: []string{"json", "html"}}, List: mcompress.List{KeepPaths: true, IfChanged: true},
	}
	r.Verification.Skip = true
	for _, want := range []string{report.Written, report.UpToDate} {
		outcomes, err := r.RunAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range outcomes {
			got = append(got, o.Status())
		}
		if !slices.Equal(got, []string{want, report.Failed, want}) {
			t.Errorf("got %v, want %s of those that are valid", got, want)
		}
		if code := mcompress.ExitCode(outcomes[1].Error()); code != mcompress.ExitInput {
			t.Errorf("exit code %d of a malformed model", code)
		}
	}
	for _, name := range []string{"out/a/one.weight-int8.onnx", "out/b/two.weight-int8.report.html",
		"out/" + report.IndexJSON} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	seen := 0
	for _, shard := range []string{"0/2", "1/2"} {
		r.List.Shard = shard
		outcomes, err := r.RunAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen += len(outcomes)
	}
	if seen != 3 {
		t.Errorf("two parts have %d models of 3", seen)
	}
}

// TestVariantsOfAModel writes two of the dtypes of transformers.js.
func TestVariantsOfAModel(t *testing.T) {
	r := mcompress.Request{
		Models: []string{fixture("mlp.onnx")}, Output: t.TempDir(),
		Variants: &mcompress.Variants{DTypes: []string{"fp16", "q8"}},
	}
	r.Verification.Skip = true
	outcomes, err := r.RunAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range outcomes {
		if o.Error() != nil {
			t.Errorf("%s: %v", o.Variant, o.Error())
		}
		got = append(got, o.Variant)
	}
	if !slices.Equal(got, []string{mcompress.SourceVariant, "fp16", "q8"}) {
		t.Errorf("got %v", got)
	}
	if _, err := os.Stat(filepath.Join(mcompress.VariantFolder(r.Output), "model_quantized.onnx")); err != nil {
		t.Error(err)
	}
}

// TestPlansAreDivided computes the parts of a plan, which has the bytes of one process, and completes it.
func TestPlansAreDivided(t *testing.T) {
	r := mcompress.Request{Models: []string{fixture("cnn.onnx")}, Steps: []mcompress.Step{quantize.WeightInt4{}}}
	r.Verification.Skip = true
	alone := r
	alone.DataFiles, alone.Output = 2, filepath.Join(t.TempDir(), "cnn.weight-int4.onnx")
	if _, err := alone.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "plan")
	p, err := r.Plan(t.Context(), folder, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Plan(t.Context(), folder, 2); mcompress.ExitCode(err) != mcompress.ExitUsage {
		t.Errorf("a second plan: %v", err)
	}
	if p, err = mcompress.OpenPlan(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	var early *mcompress.WaitError
	if _, err := p.Finalize(t.Context(), time.Millisecond, mcompress.Limits{}, mcompress.Events{}); !errors.As(err,
		&early) || !strings.Contains(err.Error(), "2 of 2 workers") {
		t.Errorf("finalized before the workers: %v", err)
	}
	for i := range 2 {
		files, err := p.Work(t.Context(), i, time.Minute, mcompress.Limits{}, mcompress.Events{})
		if err != nil || len(files) == 0 {
			t.Fatalf("worker %d: %v, %v", i, files, err)
		}
	}
	if _, err := p.Work(t.Context(), 2, 0, mcompress.Limits{},
		mcompress.Events{}); mcompress.ExitCode(err) != mcompress.ExitUsage {
		t.Errorf("a third worker: %v", err)
	}
	f, err := p.Finalize(t.Context(), time.Minute, mcompress.Limits{}, mcompress.Events{})
	if err != nil || f.UpToDate || f.Err() != nil || len(f.Outcomes) != 1 {
		t.Fatalf("got %+v, %v", f, err)
	}
	for _, file := range f.Outcomes[0].Result.Report.Result.Files {
		a, b := read(t, filepath.Join(folder, file.Name)), read(t, filepath.Join(filepath.Dir(alone.Output), file.Name))
		if !slices.Equal(a, b) {
			t.Errorf("%s is not that of one process", file.Name)
		}
	}
	if f, err := p.Finalize(t.Context(), 0, mcompress.Limits{}, mcompress.Events{}); err != nil || !f.UpToDate {
		t.Errorf("finalized again: %+v, %v", f, err)
	}
}

// TestReproduce runs the recipe of a report on its source, and on another one.
func TestReproduce(t *testing.T) {
	r := mcompress.Request{Models: []string{fixture("mlp.onnx")}, Output: filepath.Join(t.TempDir(), "out.onnx"),
		Steps: []mcompress.Step{quantize.WeightInt8{}}}
	r.Verification.Skip = true
	res, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := mcompress.Reproduce(t.Context(), res.Report, fixture("mlp.onnx"), nil, mcompress.Limits{})
	if err != nil || !made.Identical() || len(made.Files) == 0 {
		t.Errorf("got %+v, %v", made, err)
	}
	if _, err := mcompress.Reproduce(t.Context(), res.Report, fixture("cnn.onnx"), nil,
		mcompress.Limits{}); mcompress.ExitCode(err) != mcompress.ExitGate {
		t.Errorf("another source: %v", err)
	}
}

// TestSensitivities measures weights without writing a file.
func TestSensitivities(t *testing.T) {
	model := read(t, fixture("mlp.onnx"))
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.onnx", model, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := mcompress.Request{Models: []string{"m.onnx"},
		Search: &mcompress.Search{Candidates: []string{"weight-int8"}}}.Sensitivities(t.Context(), nil)
	if err != nil || len(all) != 1 || all[0].Err != nil || len(all[0].Found.Layers) == 0 {
		t.Fatalf("got %+v, %v", all, err)
	}
	files, err := os.ReadDir(".")
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

// TestPatternsAreModels treats a pattern of several files as several models, before anything is written or pushed.
func TestPatternsAreModels(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.onnx", "b.onnx"} {
		if err := os.WriteFile(filepath.Join(dir, name), read(t, fixture("mlp.onnx")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := mcompress.Request{
		Models: []string{filepath.Join(dir, "*.onnx")}, Output: filepath.Join(dir, "out") + "/",
		Steps: []mcompress.Step{quantize.WeightInt8{}},
	}
	r.Verification.Skip = true
	if res, err := r.Run(t.Context()); mcompress.ExitCode(err) != mcompress.ExitUsage {
		t.Errorf("Run: %+v, %v", res, err)
	}
	r.Push = "dir:" + filepath.Join(dir, "pushed")
	var field *mcompress.FieldError
	if _, err := r.RunAll(t.Context()); !errors.As(err, &field) || !slices.Equal(field.Fields(), []string{"Push"}) {
		t.Errorf("two models are pushed: %v", err)
	}
	if _, err := os.Stat(r.Output); err == nil {
		t.Error("there are results")
	}
	r.Push = ""
	if outcomes, err := r.RunAll(t.Context()); err != nil || len(outcomes) != 2 {
		t.Errorf("got %+v, %v", outcomes, err)
	}
}

// TestResultsOfAFailedPush has the outcome, and an error whose exit code is that of its cause.
func TestResultsOfAFailedPush(t *testing.T) {
	dir := t.TempDir()
	r := mcompress.Request{
		Models: []string{fixture("mlp.onnx")}, Output: filepath.Join(dir, "out.onnx"),
		Steps: []mcompress.Step{quantize.WeightInt8{}},
		Push:  "dir:" + filepath.Join(dir, "pushed"),
	}
	r.Verification.Skip = true
	// A file of another content with the name of the result, which a push does not replace.
	r.Events.Outcome = func(mcompress.Outcome) error {
		if err := os.MkdirAll(filepath.Join(dir, "pushed"), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "pushed", "out.onnx"), []byte("other"), 0o600)
	}
	outcomes, err := r.RunAll(t.Context())
	var failed *mcompress.ConclusionError
	if !errors.As(err, &failed) || mcompress.ExitCode(err) != mcompress.ExitUsage || len(outcomes) != 1 ||
		outcomes[0].Error() != nil {
		t.Errorf("got %+v, %v", outcomes, err)
	}
}

// A plan that was changed, and one whose processes would write elsewhere or run programs that nobody allowed, is refused.
func TestForeignPlans(t *testing.T) {
	for _, workers := range []int{0, 513, math.MaxInt32} {
		r := mcompress.Request{Models: []string{fixture("mlp.onnx")}, Steps: []mcompress.Step{quantize.WeightInt8{}}}
		if _, err := r.Plan(t.Context(), filepath.Join(t.TempDir(), "plan"), workers); err == nil {
			t.Errorf("a plan of %d workers", workers)
		}
	}
	plan := func(r mcompress.Request) (*mcompress.Plan, error) {
		r.Models, r.Steps = []string{fixture("mlp.onnx")}, []mcompress.Step{quantize.WeightInt8{}}
		return r.Plan(t.Context(), filepath.Join(t.TempDir(), "plan"), 2)
	}
	for name, r := range map[string]mcompress.Request{
		"{Reports.Dir}":              {Reports: mcompress.Reports{Dir: "elsewhere"}},
		"{ExportDir}":                {ExportDir: "elsewhere"},
		"{Verification.WeightCache}": {Verification: mcompress.Verification{WeightCache: "elsewhere"}},
		"{Push}":                     {Push: "dir:elsewhere"},
		"{Output}":                   {Output: "elsewhere/"},
	} {
		if _, err := plan(r); err == nil || !strings.Contains(err.Error(), strings.Trim(name, "{}")) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	p, err := plan(mcompress.Request{Verification: mcompress.Verification{Command: []string{"evaluator"}}, Data: mcompress.Data{
		Path: fixture("digits_test.npz"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var field *mcompress.FieldError
	if _, err := p.Work(t.Context(), 0, 0, mcompress.Limits{}, mcompress.Events{}); !errors.As(err, &field) ||
		!strings.Contains(err.Error(), "AllowPrograms") {
		t.Errorf("a worker: %v", err)
	}
	if _, err := p.Finalize(t.Context(), 0, mcompress.Limits{}, mcompress.Events{}); !errors.As(err, &field) {
		t.Errorf("finalize: %v", err)
	}
	if err := p.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.Folder(), "plan.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mcompress.OpenPlan(t.Context(), p.Folder()); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"workers": 2`, `"workers": 3`}, {`"evaluator"`, `"another"`}, {`"Dir": ""`, `"Dir": "elsewhere"`}, {`"digest": "`, `"digest": "0`},
		{`"workers": 2`, `"workers": 0`}, {`"workers": 2`, `"workers": 2, "unknown": 1`},
	} {
		changed := strings.Replace(string(text), change[0], change[1], 1)
		if changed == string(text) {
			t.Fatalf("the plan has no %s:\n%s", change[0], text)
		}
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := mcompress.OpenPlan(t.Context(), p.Folder()); !errors.As(err, &field) {
			t.Errorf("%s: got %v", change[1], err)
		}
	}
}
