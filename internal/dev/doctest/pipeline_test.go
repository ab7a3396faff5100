package doctest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// A workflow is the snippet, as far as a runner without GitHub can run it.
// An unsupported field is an error of the test.
type workflow struct {
	Name string
	On   map[string]any
	Jobs map[string]struct {
		RunsOn string `yaml:"runs-on"`
		Env    map[string]string
		Steps  []step
	}
}

type step struct {
	Name   string
	Uses   string
	With   map[string]any
	If     string
	Run    string
	Folder string `yaml:"working-directory"`
}

// TestPipelineCompresses runs the snippet's steps on a model that its gates let through.
func TestPipelineCompresses(t *testing.T) {
	r := newRunner(t, "mlp.onnx")
	r.play(t)
	if r.failed != 0 {
		t.Errorf("a step ended with exit code %d\n%s", r.failed, r.log.String())
	}
	want := []string{"model.dynamic-int8.environment.json", "model.dynamic-int8.onnx", "model.dynamic-int8.report.html", "model.dynamic-int8.report.json", "model.dynamic-int8.report.md"}
	if got := strings.Join(r.uploaded, " "); got != strings.Join(want, " ") {
		t.Errorf("uploaded %s, want %s", got, want)
	}
	if s := read(t, r.summary); !strings.Contains(s, "model.dynamic-int8.onnx") {
		t.Errorf("the summary is %q", s)
	}
}

// TestPipelineStopsARelease runs them on a model of which too little can be changed.
func TestPipelineStopsARelease(t *testing.T) {
	r := newRunner(t, "cnn.onnx")
	r.play(t)
	if r.failed != 3 {
		t.Errorf("exit code %d, want 3\n%s", r.failed, r.log.String())
	}
	if s := read(t, r.summary); !strings.Contains(s, "require-coverage") {
		t.Errorf("the summary does not say why: %s", s)
	}
	if !strings.Contains(strings.Join(r.uploaded, " "), "model.dynamic-int8.rejected.report.json") {
		t.Errorf("uploaded %v", r.uploaded)
	}
}

// A runner does in a folder what GitHub's does on a machine of its own.
type runner struct {
	shell    *shell
	flow     workflow
	summary  string // the file that the job's summary is written to
	failed   int    // the exit code of the first step that failed
	uploaded []string
	log      strings.Builder
}

func newRunner(t *testing.T, model string) *runner {
	t.Helper()
	r := &runner{shell: newShell(t, t.TempDir()), summary: filepath.Join(t.TempDir(), "summary.md")}
	text := read(t, root(t), "docs", "github-actions.yml")
	if err := yaml.UnmarshalWithOptions([]byte(text), &r.flow, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(r.flow.Jobs) != 1 {
		t.Fatalf("%d jobs, want 1", len(r.flow.Jobs))
	}
	models := filepath.Join(r.shell.dir, "models")
	if err := os.Mkdir(models, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(models, "model.onnx"), []byte(read(t, root(t), "fixtures", model)), 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *runner) play(t *testing.T) {
	t.Helper()
	r.shell.env = append(r.shell.env, "GITHUB_STEP_SUMMARY="+r.summary)
	for _, job := range r.flow.Jobs {
		for name, value := range job.Env {
			r.shell.env = append(r.shell.env, name+"="+value)
		}
		for _, s := range job.Steps {
			if r.failed == 0 || s.If == "always()" {
				r.step(t, s)
			}
		}
	}
}

func (r *runner) step(t *testing.T, s step) {
	t.Helper()
	action, _, _ := strings.Cut(s.Uses, "@")
	switch {
	case s.Run != "":
		in := &shell{filepath.Join(r.shell.dir, s.Folder), r.shell.env}
		out, code := in.run(t, s.Run)
		r.log.WriteString(out)
		if r.failed == 0 {
			r.failed = code
		}
	case action == "actions/checkout":
		r.checkout(t, s)
	case action == "actions/upload-artifact":
		r.upload(t, s)
	case action == "actions/setup-go":
		if file, _ := s.With["go-version-file"].(string); read(t, r.shell.dir, file) == "" {
			t.Errorf("%s is empty", file)
		}
	default:
		t.Errorf("step %q: this test does not know what it does", s.Name+s.Uses)
	}
}

// checkout does nothing for the repository of the workflow itself.
func (r *runner) checkout(t *testing.T, s step) {
	t.Helper()
	repository, other := s.With["repository"].(string)
	if !other {
		return
	}
	if repository != "mcompress/mcompress" {
		t.Fatalf("checkout of %s: this test has no copy of it", repository)
	}
	if err := os.Symlink(root(t), filepath.Join(r.shell.dir, s.With["path"].(string))); err != nil {
		t.Fatal(err)
	}
}

func (r *runner) upload(t *testing.T, s step) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(r.shell.dir, s.With["path"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		r.uploaded = append(r.uploaded, f.Name())
	}
}
