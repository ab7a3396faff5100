package job_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/distill"
	filedigest "github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

// recipeOf is the recipe in the report of a dry run.
func recipeOf(t *testing.T, input string, flags ...string) *report.Recipe {
	t.Helper()
	o := options(input, step(t, quantize.StaticInt8{}.Method(), flags...))
	o.DryRun = true
	return run(t, o).Report.Recipe
}

// The digest of a recipe depends on the names and the content of its files, not on their folders, nor on files that
// are written.
func TestRecipeDigest(t *testing.T) {
	in := take(t, "mlp.onnx", "digits_train.npz", "digits_test.npz")
	dir := filepath.Dir(in)
	t.Chdir(dir)
	if err := os.Link("digits_train.npz", "renamed.npz"); err != nil {
		t.Fatal(err)
	}
	want := recipeOf(t, in, "--data", "digits_train.npz", "--calibrate", "16")
	for _, flags := range [][]string{
		{"--calibrate=16", "--data", "./digits_train.npz"},
		{"--data", filepath.Join(dir, "digits_train.npz"), "--calibrate", "16"},
		{"--data", "digits_train.npz", "--calibrate", "16", "--save-ranges", "ranges.json"},
	} {
		if got := recipeOf(t, in, flags...); got.SHA256 != want.SHA256 {
			t.Errorf("%v: %s, want %s", flags, got.SHA256, want.SHA256)
		}
	}
	sum, _, err := filedigest.File(t.Context(), "digits_train.npz", nil)
	if inputs := []report.RecipeInput{{Name: "digits_train.npz", SHA256: sum}}; err != nil ||
		!reflect.DeepEqual(want.Inputs, inputs) {
		t.Errorf("got inputs %v, %v, want %v", want.Inputs, err, inputs)
	}
	for _, flags := range [][]string{{"--data", "digits_train.npz", "--calibrate", "17"},
		{"--data", "digits_test.npz", "--calibrate", "16"}, {"--data", "renamed.npz", "--calibrate", "16"}} {
		if got := recipeOf(t, in, flags...); got.SHA256 == want.SHA256 {
			t.Errorf("%v: the digest does not change", flags)
		}
	}
}

// Folders are digested by their files, models by all of theirs; files of training that do not affect the result are
// not in the recipe.
func TestRecipeOfTraining(t *testing.T) {
	in := take(t, "mlp.onnx", "external.onnx", "external_a.bin", "external_b.bin")
	t.Chdir(filepath.Dir(in))
	if err := os.Mkdir("samples", 0o755); err != nil {
		t.Fatal(err)
	}
	recipe := func(flags ...string) *report.Recipe {
		t.Helper()
		r, err := job.RecipeOf(step(t, distill.FineTune{}.Method(), append(flags, "--data", "samples", "--teacher",
			"external.onnx")...))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := recipe()
	if again := recipe("--save", "state.zip", "--save-every", "3", "--resume"); !reflect.DeepEqual(again, first) {
		t.Errorf("got %+v, want %+v", again, first)
	}
	if strings.Contains(first.Text, "resume") || !strings.Contains(first.Text, "teacher: external.onnx") {
		t.Errorf("got %s", first.Text)
	}
	seen := map[string]bool{first.SHA256: true}
	for _, path := range []string{"samples/a.npy", "samples/b.npy", "external_b.bin"} {
		b, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, 1), 0o644); err != nil {
			t.Fatal(err)
		}
		r := recipe()
		if seen[r.SHA256] {
			t.Errorf("%s does not affect the digest", path)
		}
		seen[r.SHA256] = true
	}
}

// Reports and models hold names of files, not the folders of the machine.
func TestNoFoldersInReports(t *testing.T) {
	in := take(t, "mlp.onnx", "digits_train.npz", "digits_test.npz")
	dir := filepath.Dir(in)
	data := filepath.Join(dir, "digits_train.npz")
	o := options(in, step(t, quantize.StaticInt8{}.Method(), "--data", data, "--calibrate", "8", "--save-ranges",
		filepath.Join(dir, "ranges.json")))
	o.Reports, o.ReportDir, o.Verify = []string{"json", "md", "html"}, filepath.Join(dir, "reports"),
		&job.Verification{Data: job.Data{Path: data}, Force: true}
	r := run(t, o)
	for _, path := range append(r.Reports, r.Output, filepath.Join(dir, "ranges.json")) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), dir) || strings.Contains(string(b), filepath.Base(dir)+"/") {
			t.Errorf("%s holds the folder", path)
		}
	}
	text, err := json.Marshal(r.Report)
	if err != nil || !strings.Contains(string(text), "data: digits_train.npz") {
		t.Errorf("%v: the recipe does not name the data: %s", err, r.Report.Recipe.Text)
	}
}

func TestWithoutFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, path, want string }{
		{"load /a/b/m.onnx: /a/b/m.onnx.data", "/a/b/m.onnx", "load m.onnx: m.onnx.data"},
		{"load ../b/m.onnx", "../b/m.onnx", "load m.onnx"},
		{"load " + here + "/m.onnx", "m.onnx", "load m.onnx"},
		{"/m.onnx /x/y", "/m.onnx", "/m.onnx /x/y"},
		{"a/b c", "", "a/b c"},
	} {
		if got := job.WithoutFolders(c.text, c.path); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
