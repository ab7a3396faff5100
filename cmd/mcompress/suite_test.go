package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

// TestEveryMethod runs the suite of all methods, each on half of the fixtures, or on all by make test-exhaustive: files
// have the reported sizes; results are valid and run if the source is and does; reports match; the ledger has every
// weight; no output is larger than its source. On a third of those, bytes and report, verification included, are
// identical for any number of workers, bytes without assembly as well; reports can be reproduced; a second run changes
// nothing. Pruning with training runs on the fixtures that can be trained, on random samples.
func TestEveryMethod(t *testing.T) {
	models := conform.Fixtures(t)
	pruned := compressed(t, prepared(t, "pruned"), []string{"prune", "--method", "l1-global", "--amount", "0.9"},
		models)
	sparse := compressed(t, prepared(t, "sparse"), []string{"sparse"}, pruned)
	checks := sourceChecks{}
	training := sync.OnceValues(func() ([]string, []string) { return trainable(t, models) })
	for i, m := range methods {
		if m.Stage == pass.Train && m.Command != "prune" {
			continue // its package tests it
		}
		t.Run(m.Name, func(t *testing.T) {
			s := &suite{m: m, number: i, sourceChecks: checks, sources: models}
			switch {
			case m.Stage == pass.Train:
				s.sources, s.samples = training()
			case m.Stage == pass.Sparsify:
				s.sources = pruned
			case m.Command == "sparse": // of stage Prepare
				s.sources = sparse
			}
			some := conform.Part(i, 2, numbers(s.sources))
			s.sources = picked(s.sources, some)
			if s.samples != nil {
				s.samples = picked(s.samples, some)
			}
			s.run(t)
		})
	}
}

type suite struct {
	m      *pass.Method
	number int // of m
	sourceChecks
	sources []string
	samples []string // of each source, for methods that train; nil for others
	results []string // of the sources, in their order

	valid, ran int // sources that onnx.checker and ONNX Runtime accept
}

func (s *suite) run(t *testing.T) {
	s.results = s.compress(t, "1")
	s.repeat(t, conform.Part(s.number/2, 3, numbers(s.sources)))
	must(t, append([]string{"verify-report", "--quiet", "--workers", "1"}, s.results...))
	changed := 0
	for i, source := range s.sources {
		changed += s.check(t, source, s.results[i])
	}
	if n := len(s.sources); changed == 0 || s.valid < n/2 || s.ran < n/2 {
		t.Errorf("of %d models, %d were valid and %d ran; %d weights changed", n, s.valid, s.ran, changed)
	}
}

// repeat runs the method again on some sources, with other settings that change no result, and on its results.
func (s *suite) repeat(t *testing.T, some []int) {
	t.Helper()
	part := &suite{m: s.m, sources: picked(s.sources, some), results: picked(s.results, some)}
	if s.samples != nil {
		part.samples = picked(s.samples, some)
	}
	for i, result := range part.compress(t, "8") {
		sameBytes(t, part.results[i], result)
		if a, b := readReport(t, part.results[i]), readReport(t, result); a.Digest != b.Digest {
			t.Errorf("%s: the report depends on the number of workers", part.sources[i])
		}
	}
	if !s.m.Calibrates && s.samples == nil {
		dir := prepared(t, "plain")
		withoutAssembly(t, slices.Concat(s.args("2", dir), []string{"--no-verify"}, part.sources))
		for i, result := range outputs(dir, part.sources, s.m.Name) {
			sameBytes(t, part.results[i], result)
		}
	}
	for i, source := range part.sources {
		again := []string{"reproduce", "--quiet", strings.TrimSuffix(part.results[i], ".onnx") + ".report.json", source}
		if s.samples != nil {
			again = append(again, "--inputs", filepath.Dir(part.samples[i]))
		}
		must(t, again)
	}
	part.again(t)
}

func numbers(list []string) []int {
	var all []int
	for i := range list {
		all = append(all, i)
	}
	return all
}

func picked(list []string, numbers []int) []string {
	var part []string
	for _, i := range numbers {
		part = append(part, list[i])
	}
	return part
}

// chosen is the command of a method, which accepts models that it cannot change, and a target that runs it.
func chosen(m *pass.Method) []string {
	switch {
	case m.Command == "sparse":
		return []string{m.Command, "--format", m.Name}
	case m == (prune.Layers{}).Method():
		return []string{m.Command, "--method", m.Name, "--allow-unchanged"}
	case m == (quantize.Float4{}).Method(): // the default target does not run it
		return []string{m.Command, "--method", m.Name, "--target", "embedded"}
	}
	return []string{m.Command, "--method", m.Name}
}

func (s *suite) args(workers, dir string) []string {
	return append(chosen(s.m), "--quiet", "--no-sync", "--report", "json", "--workers", workers, "--output", dir)
}

func (s *suite) compress(t *testing.T, workers string) []string {
	t.Helper()
	dir := prepared(t, "workers"+workers)
	s.on(t, s.sources, s.args(workers, dir))
	return outputs(dir, s.sources, s.m.Name)
}

// on runs a command on models: on all at once, or on each with its samples.
func (s *suite) on(t *testing.T, models, args []string) {
	t.Helper()
	if s.samples == nil {
		must(t, append(args, models...))
		return
	}
	for i, m := range models {
		must(t, append(slices.Clone(args), "--data", s.samples[i], "--steps", "2", "--training-steps", "2",
			"--batch", "2", m))
	}
}

// check checks one result and returns the number of weights that changed.
func (s *suite) check(t *testing.T, source, result string) int {
	t.Helper()
	r := readReport(t, result)
	s.sizes(t, r, source, result)
	s.parameters(t, r, source, result)
	if s.m.Command != "sparse" || s.m.Stage != pass.Prepare { // which replaces several constants by one weight
		ledgerIsComplete(t, r, source)
	}
	w, v := conform.Start(t), s.sourceChecks.of(t, source)
	if v.valid {
		s.valid++
		if err := w.Check(result, true); err != nil {
			t.Errorf("%s is not valid: %v", result, err)
		}
	}
	if v.runs {
		s.ran++
		// else the method's package tests the result with the embedded engine
		if !slices.ContainsFunc(r.Ledger, withoutKernel) {
			s.compare(t, w, source, result)
		}
	}
	changed := 0
	for _, wt := range r.Weights {
		if wt.Changed {
			changed++
		}
	}
	return changed
}

// sourceChecks has the results of onnx.checker and ONNX Runtime on the sources, which are shared by methods.
type sourceChecks map[string]sourceCheck

type sourceCheck struct{ valid, runs bool }

func (all sourceChecks) of(t *testing.T, source string) sourceCheck {
	t.Helper()
	v, ok := all[source]
	if !ok {
		w := conform.Start(t)
		_, err := w.Run(source, conform.Options{})
		v = sourceCheck{w.Check(source, true) == nil, err == nil}
		all[source] = v
	}
	return v
}

// sizes compares the files with their sizes in the report.
func (s *suite) sizes(t *testing.T, r *report.Report, source, result string) {
	t.Helper()
	for _, f := range r.Result.Files {
		if st, err := os.Stat(filepath.Join(filepath.Dir(result), f.Name)); err != nil || st.Size() != f.Bytes {
			t.Errorf("%s: the report has %d bytes for %s: %v", result, f.Bytes, f.Name, err)
		}
	}
	changed := slices.ContainsFunc(r.Weights, func(w report.Weight) bool { return w.Changed })
	if b := r.Totals.FileBytes; s.m.Shrinks && changed && b.After > b.Before {
		t.Errorf("%s: %d bytes became %d", source, b.Before, b.After)
	}
}

// parameters compares the number of parameters in the report: no quantized or sparse form changes it, unless weights
// are shared from now on or folded; pruned models have the elements of their float constants.
func (s *suite) parameters(t *testing.T, r *report.Report, source, result string) {
	t.Helper()
	p := r.Totals.Parameters
	switch {
	case strings.HasPrefix(filepath.Base(source), "duplicated"), filepath.Base(source) == "gemm.onnx": // equal weights; a bias that is multiplied by 0
		if p.After > p.Before && s.m.Stage != pass.Prepare {
			t.Errorf("%s: %+v parameters", result, p)
		}
	case s.m.Command == "prune":
		if want, plain := floatElements(t, result); plain && p.After != want {
			t.Errorf("%s: %d parameters, want %d", result, p.After, want)
		}
	case s.m.Command == "sparse" || s.m.Stage == pass.Quantize:
		folded := slices.ContainsFunc(r.Ledger, func(row report.Row) bool { return row.Form == pass.Folded.Name })
		if p.After != p.Before && !folded {
			t.Errorf("%s: %d parameters became %d", result, p.Before, p.After)
		}
	}
	if want, plain := floatElements(t, source); plain && p.Before != want {
		t.Errorf("%s: %d parameters, want %d", source, p.Before, want)
	}
}

// floatElements counts the elements of the float constants of rank 1 or more of a model; plain is false if it has
// quantized ones.
func floatElements(t *testing.T, path string) (n int64, plain bool) {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain = true
	for g := range f.Model.Graphs() {
		for _, v := range g.Consts() {
			plain = plain && (v.Const.DType.Bits() > 8 || v.Const.DType == ir.Bool)
			if pass.IsWeight(v.Const) && v.Name != "scales" { // of Resize
				n += v.Const.Elems()
			}
		}
	}
	return n, plain
}

// withoutKernel reports whether a weight has a form that ONNX Runtime has no kernel for.
func withoutKernel(r report.Row) bool {
	return r.Status == pass.Changed.String() && slices.ContainsFunc(append(r.Notes, r.Reason),
		func(reason report.Reason) bool { return reason.Code == pass.NoKernel })
}

// compare requires that the result runs, with equal outputs if only the storage changed.
func (s *suite) compare(t *testing.T, w *conform.Worker, source, result string) {
	t.Helper()
	outs, err := w.Compare(source, result, conform.Options{})
	if err != nil {
		t.Errorf("%s does not run: %v", result, err)
		return
	}
	for _, o := range outs {
		if s.m.Command == "sparse" && !o.Equal || s.m.Stage == pass.Prepare && o.SQNR < 60 {
			t.Errorf("%s: output %q differs: %v dB", result, o.Name, o.SQNR)
		}
	}
}

// again runs the method on its own results: values do not change, except by methods that repeat, such as pruning a
// fraction of the remaining weights.
func (s *suite) again(t *testing.T) {
	t.Helper()
	dir := prepared(t, "again")
	s.on(t, s.results, append(s.args("2", dir), "--no-verify"))
	for i, twice := range outputs(dir, s.results, s.m.Name) {
		r := readReport(t, twice)
		for _, w := range r.Weights {
			if !s.m.Repeats && s.samples == nil && w.Changed && (w.Error == nil || !w.Error.Exact) {
				t.Errorf("%s: a second run changes %q", s.sources[i], w.Tensor)
			}
		}
	}
}

// compressed runs a command on models and returns the outputs.
func compressed(t *testing.T, dir string, args, models []string) []string {
	t.Helper()
	must(t, append(append(args, "--quiet", "--no-sync", "--report", "none", "--no-verify", "--output", dir), models...))
	label := "auto"
	if len(args) > 2 {
		label = args[2]
	}
	return outputs(dir, models, label)
}

// outputs returns the paths of the outputs of models in dir.
func outputs(dir string, models []string, label string) []string {
	var list []string
	for _, m := range models {
		list = append(list, filepath.Join(dir, strings.TrimSuffix(filepath.Base(m), ".onnx")+"."+label+".onnx"))
	}
	return list
}

func prepared(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func must(t *testing.T, args []string) {
	t.Helper()
	if code, _, stderr := call(args...); code != exitDone {
		t.Fatalf("%s: exit code %d\n%s", strings.Join(args[:4], " "), code, stderr)
	}
}

// withoutAssembly runs the program, which testscript has put on the PATH, as on a CPU that lacks AVX2: it uses the
// plain Go kernels only.
func withoutAssembly(t *testing.T, args []string) {
	t.Helper()
	c := exec.Command("mcompress", args...)
	c.Env = append(os.Environ(), "GODEBUG=cpu.avx2=off")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args[:4], " "), err, out)
	}
}

func sameBytes(t *testing.T, a, b string) {
	t.Helper()
	x, errX := os.ReadFile(a)
	y, errY := os.ReadFile(b)
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

func readReport(t *testing.T, model string) *report.Report {
	t.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(model, ".onnx") + ".report.json")
	if err != nil {
		t.Fatal(err)
	}
	r := &report.Report{}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}
