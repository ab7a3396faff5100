package quantize

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
)

// A variant is a method with options, as on a command line without dashes, target=NAMES among them.
type variant struct {
	method  *pass.Method
	options []string
}

func (v variant) String() string {
	return strings.Join(append([]string{v.method.Name}, v.options...), " ")
}

func (v variant) step(t testing.TB) pass.Options {
	t.Helper()
	s, err := pass.NewStep(v.method, func(fs *flag.FlagSet) error {
		for _, o := range v.options {
			name, value, ok := strings.Cut(o, "=")
			if name == "target" {
				continue
			}
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

// on is v for the runtimes of a target.
func (v variant) on(names string) variant {
	return variant{v.method, append(slices.Clone(v.options), "target="+names)}
}

// target is that of the options, nil for the default.
func (v variant) target(t testing.TB) *pass.Target {
	t.Helper()
	for _, o := range v.options {
		if names, ok := strings.CutPrefix(o, "target="); ok {
			target, err := pass.ParseTarget(names, CPUs)
			if err != nil {
				t.Fatal(err)
			}
			return target
		}
	}
	return nil
}

// apply runs v on the model at path and writes the result to out.
func (v variant) apply(t testing.TB, path, out string, change ...func(*job.Options)) *job.Result {
	t.Helper()
	o := job.Options{
		Input: path, Output: out, Steps: []pass.Options{v.step(t)},
		Version: "test", Workers: 2, Memory: 64 << 20, Target: v.target(t),
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

func fixture(name string) string { return filepath.Join("..", "fixtures", name+".onnx") }

// label is a short name for the model at path.
func label(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".onnx")
	if name == "model" {
		name = filepath.Base(filepath.Dir(path))
	}
	return name
}

// many skips t in short runs, as it runs many models.
func many(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("many models: only without -short")
	}
}
