package quantize

import (
	"context"
	"flag"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/conform"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
)

// A variant is a method with options, as they stand on a command line without dashes.
type variant struct {
	method  *pass.Method
	options []string
}

func (v variant) String() string {
	return strings.Join(append([]string{v.method.Name}, v.options...), " ")
}

func (v variant) step(t testing.TB) pass.Step {
	t.Helper()
	s, err := pass.NewStep(v.method, func(fs *flag.FlagSet) error {
		for _, o := range v.options {
			name, value, ok := strings.Cut(o, "=")
			if !ok {
				value = "true"
			}
			if err := fs.Set(name, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apply runs v on the model at path and writes the result to out.
func (v variant) apply(t testing.TB, path, out string, change ...func(*job.Options)) *job.Result {
	t.Helper()
	o := job.Options{
		Input: path, Output: out, Steps: []pass.Step{v.step(t)},
		Version: "test", Workers: 2, Memory: 64 << 20,
	}
	for _, c := range change {
		c(&o)
	}
	r, err := job.Run(context.Background(), o)
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return r
}

// changed counts the rows of weights that are stored in another way.
func changed(r *job.Result) int {
	n := 0
	for _, row := range r.Report.Ledger {
		if row.Status == pass.Changed.String() {
			n++
		}
	}
	return n
}

// fixtures are the models of the repository. Names with more dots are outputs of the tool.
func fixtures(t testing.TB) []string {
	return slices.DeleteFunc(modelsIn(t, filepath.Join("..", "fixtures")), func(path string) bool {
		return strings.Count(filepath.Base(path), ".") > 1
	})
}

// realModels are the shared ones, most of them trained.
func realModels(t testing.TB) []string {
	return modelsIn(t, filepath.Join(conform.Shared(t), "fixtures", "models"))
}

func fixture(name string) string { return filepath.Join("..", "fixtures", name+".onnx") }

// modelsIn finds models below dir.
func modelsIn(t testing.TB, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".onnx") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d models in %s: %v", len(paths), dir, err)
	}
	return paths
}

// label is a short name for the model at path.
func label(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".onnx")
	if name == "model" {
		name = filepath.Base(filepath.Dir(path))
	}
	return name
}
