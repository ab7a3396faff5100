package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rhysd/actionlint"
)

var action = filepath.Join("..", "action.yml")

// releases serves the release of the tests, in a folder named after its tag, as a forge does.
func releases(t *testing.T, folder string) string {
	t.Helper()
	server := httptest.NewServer(http.StripPrefix("/"+tag+"/", http.FileServer(http.Dir(folder))))
	t.Cleanup(server.Close)
	return server.URL
}

// job is a runner with a model in its folder, and the inputs of the action.
func job(t *testing.T, inputs map[string]string) (*runner, map[string]string) {
	t.Helper()
	require(t, "curl")
	r := newRunner(t)
	write(t, filepath.Join(r.dir, "models", "my model.onnx"), read(t, filepath.Join("..", "fixtures", "mlp.onnx")), 0o644)
	given := map[string]string{"model": "models/my model.onnx", "releases": releases(t, dist)}
	for name, value := range inputs {
		given[name] = value
	}
	return r, given
}

func (r *runner) summary() string { return string(read(r.t, r.files["GITHUB_STEP_SUMMARY"])) }

func (r *runner) exists(name string) bool {
	_, err := os.Stat(filepath.Join(r.dir, name))
	return err == nil
}

// uploaded are the files of the artifact, empty if none is uploaded.
func (r *runner) uploaded() (files []string) {
	for _, s := range r.used {
		if !strings.HasPrefix(s.Uses, "actions/upload-artifact@v") {
			r.t.Errorf("step %q uses %s", s.Name, s.Uses)
		}
		found, err := filepath.Glob(filepath.Join(s.With["path"], "*"))
		if err != nil {
			r.t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func TestActionCompresses(t *testing.T) {
	r, inputs := job(t, map[string]string{"arguments": "--method float16\n--min-ratio 1.5", "output": "out/small.onnx", "push": "dir:registry"})
	outputs := r.action(action, inputs)
	if r.failed || outputs["exit-code"] != "0" || outputs["folder"] != "out" {
		t.Fatalf("outputs %v\n%s", outputs, r.log.String())
	}
	if !r.exists("out/small.onnx") || !r.exists("registry/small.onnx") {
		t.Errorf("the result was not written and pushed\n%s", r.log.String())
	}
	if !strings.Contains(r.summary(), "min-ratio") {
		t.Errorf("the summary is %q", r.summary())
	}
	if files := r.uploaded(); len(files) < 3 {
		t.Errorf("the artifact has %q, want three reports", files)
	}
}

// Samples of the input test measure the result that those of the input data chose.
func TestActionMeasuresOnTestSamples(t *testing.T) {
	r, inputs := job(t, map[string]string{"arguments": "--method static-int8 --limit 20 --max-accuracy-drop 0.05", "data": "train samples.npz", "test": "held out.npz"})
	for name, fixture := range map[string]string{inputs["data"]: "digits_train.npz", inputs["test"]: "digits_test.npz"} {
		write(t, filepath.Join(r.dir, name), read(t, filepath.Join("..", "fixtures", fixture)), 0o644)
	}
	r.action(action, inputs)
	if r.failed || !strings.Contains(r.summary(), "held out.npz") {
		t.Errorf("failed %v, summary %q\n%s", r.failed, r.summary(), r.log.String())
	}
}

// If a gate does not hold, the job fails, nothing is pushed, and the report of the rejected result is in the summary and in the artifact.
func TestActionFailsByGate(t *testing.T) {
	r, inputs := job(t, map[string]string{"arguments": "--max-size 1KiB", "push": "dir:registry"})
	outputs := r.action(action, inputs)
	if !r.failed || outputs["exit-code"] != "3" || outputs["folder"] != "compressed" {
		t.Errorf("failed %v, outputs %v\n%s", r.failed, outputs, r.log.String())
	}
	if r.exists("registry") || !strings.Contains(r.summary(), "max-size") || len(r.uploaded()) < 3 {
		t.Errorf("pushed %v, summary %q, artifact %q", r.exists("registry"), r.summary(), r.uploaded())
	}
}

// An archive that is not the one of the checksum is not unpacked.
func TestActionVerifiesArchive(t *testing.T) {
	altered := t.TempDir()
	archive := filepath.Base(only(t, "mcompress_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	write(t, filepath.Join(altered, archive), append(read(t, filepath.Join(dist, archive)), 0), 0o644)
	write(t, filepath.Join(altered, "SHA256SUMS"), read(t, filepath.Join(dist, "SHA256SUMS")), 0o644)
	for name, changes := range map[string]map[string]string{
		"altered":           {"releases": releases(t, altered)},
		"other checksum":    {"sha256": strings.Repeat("0", 64)},
		"no such version":   {"version": "v9.9.9"},
		"branch as version": {"version": "main"},
	} {
		r, inputs := job(t, changes)
		r.action(action, inputs)
		if !r.failed || !strings.Contains(r.log.String(), "::error::mcompress: ") || r.path != os.Getenv("PATH") || len(r.used) > 0 {
			t.Errorf("%s: failed %v\n%s", name, r.failed, r.log.String())
		}
	}
	r, inputs := job(t, map[string]string{"sha256": digests(t, dist)[archive], "artifact": ""})
	if r.action(action, inputs); r.failed || len(r.used) > 0 {
		t.Errorf("the right checksum: %s", r.log.String())
	}
}

// Inputs are no shell commands.
func TestActionDoesNotExpandInputs(t *testing.T) {
	r, inputs := job(t, map[string]string{"arguments": "--skip $(touch${IFS}injected) --only *", "model": "models/$(touch injected).onnx"})
	if r.action(action, inputs); !r.failed || r.exists("injected") {
		t.Errorf("failed %v, injected %v\n%s", r.failed, r.exists("injected"), r.log.String())
	}
	if want := "$(touch injected).onnx"; !strings.Contains(r.log.String(), want) {
		t.Errorf("no %s in the error\n%s", want, r.log.String())
	}
}

// Inputs are no options, and make no further outputs of a step.
func TestActionOfHostileInputs(t *testing.T) {
	for name, changes := range map[string]map[string]string{
		"a line break in the output":    {"output": "compressed\nextra=1"},
		"a carriage return":             {"output": "compressed\rextra=1"},
		"a line break in the model":     {"model": "models/my model.onnx\nextra=1"},
		"another command":               {"command": "push"},
		"a command that is a flag":      {"command": "--policy=elsewhere"},
		"a version that leaves a path":  {"version": "v1.2.3/../../other"},
		"a model that would be a flag":  {"model": "--output=elsewhere.onnx"},
		"a model that would be a short": {"model": "-h"},
	} {
		r, inputs := job(t, changes)
		outputs := r.action(action, inputs)
		if !r.failed || r.exists("elsewhere.onnx") || outputs["extra"] != "" || strings.ContainsAny(outputs["folder"], "\r\n") {
			t.Errorf("%s: failed %v, outputs %v\n%s", name, r.failed, outputs, r.log.String())
		}
	}
	for _, folder := range []string{"-delete", "--output=x", "a b"} {
		r, inputs := job(t, map[string]string{"output": folder, "arguments": "--no-verify"})
		if outputs := r.action(action, inputs); r.failed || outputs["folder"] != folder || r.summary() == "" || len(r.uploaded()) < 3 {
			t.Errorf("%s: failed %v, outputs %v, artifact %q\n%s", folder, r.failed, outputs, r.uploaded(), r.log.String())
		}
		if !r.exists(folder + "/my model.dynamic-int8.onnx") {
			t.Errorf("%s: no result", folder)
		}
	}
}

// A link to a file of the runner in the folder of the result is no report.
func TestActionFollowsNoLinks(t *testing.T) {
	r, inputs := job(t, map[string]string{"arguments": "--no-verify"})
	write(t, filepath.Join(r.dir, "secret"), []byte("text-of-the-runner"), 0o600)
	if err := os.Mkdir(filepath.Join(r.dir, "compressed"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.report.md", "a.report.json"} {
		if err := os.Symlink("../secret", filepath.Join(r.dir, "compressed", name)); err != nil {
			t.Skip(err)
		}
	}
	r.action(action, inputs)
	if r.failed || strings.Contains(r.summary(), "text-of-the-runner") || !strings.Contains(r.summary(), "my model") {
		t.Errorf("failed %v, summary %q\n%s", r.failed, r.summary(), r.log.String())
	}
	files := r.uploaded()
	if len(files) < 3 {
		t.Errorf("artifact %q", files)
	}
	for _, path := range files {
		if strings.Contains(string(read(t, path)), "text-of-the-runner") {
			t.Errorf("%s has the content of a file elsewhere", path)
		}
	}
}

// The workflow of the documentation is valid and runs.
func TestWorkflow(t *testing.T) {
	path := filepath.Join("..", "docs", "github-actions.yml")
	text := read(t, path)
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := linter.Lint(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	var workflow struct {
		Jobs map[string]struct{ Steps []step }
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t)
	write(t, filepath.Join(r.dir, "models", "model.onnx"), read(t, filepath.Join("..", "fixtures", "mlp.onnx")), 0o644)
	for _, s := range workflow.Jobs["compress"].Steps {
		if name, _, _ := strings.Cut(s.Uses, "@"); name != "mcompress/mcompress" {
			r.step(s)
			continue
		}
		s.With["releases"] = releases(t, dist)
		r.action(action, s.With)
	}
	if r.failed || !r.exists("compressed/model.onnx") || !r.exists("compressed/model.report.json") {
		t.Errorf("failed %v\n%s", r.failed, r.log.String())
	}
}
