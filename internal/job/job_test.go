package job_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/sparse"
)

const fixtures = "../../fixtures"

// take copies a fixture and its data files into a temporary folder.
func take(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(fixtures, n))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, n), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, names[0])
}

func step(t *testing.T, m *pass.Method, flags ...string) pass.Options {
	t.Helper()
	s, err := pass.NewStep(m, func(fs *flag.FlagSet) error { return fs.Parse(flags) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(input string, steps ...pass.Options) job.Options {
	return job.Options{Input: input, Label: "small", Steps: steps, Version: "test", Workers: 2,
		Memory: 64 << 20, Digest: true}
}

func run(t *testing.T, o job.Options) *job.Result {
	t.Helper()
	r, err := job.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// files are the names in path's folder.
func files(t *testing.T, path string) []string {
	t.Helper()
	es, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names
}

func digest(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestOutputReportAndProvenanceMatch(t *testing.T) {
	in := take(t, "mlp.onnx")
	o := options(in, step(t, quantize.DynamicInt8{}.Method()))
	o.Reports = []string{"json", "md", "html"}
	r := run(t, o)
	want := []string{"mlp.onnx", "mlp.small.environment.json", "mlp.small.onnx", "mlp.small.report.html",
		"mlp.small.report.json", "mlp.small.report.md"}
	if got := files(t, in); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	out, err := onnx.Open(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	meta := map[string]string{}
	for _, e := range out.Model.Meta {
		meta[e.Key] = e.Value
	}
	recipe, err := r.Report.Recipe.Sum()
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"mcompress.version":       "test",
		"mcompress.recipe_sha256": recipe,
		"mcompress.source_sha256": digest(t, in),
	} {
		if meta[key] != want {
			t.Errorf("%s is %q, want %q", key, meta[key], want)
		}
	}
	if got, want := r.Report.Result.Files[0].SHA256, digest(t, r.Output); got != want {
		t.Errorf("the report gives the output the digest %s, it has %s", got, want)
	}
}

func TestRecipeInTheReportReproducesTheBytes(t *testing.T) {
	in := take(t, "cnn.onnx")
	steps := []pass.Options{
		step(t, prune.L1{}.Method(), "-amount", "0.8"),
		step(t, quantize.DynamicInt8{}.Method(), "-skip", "op:Conv"),
		step(t, sparse.Auto{}.Method()),
	}
	first := run(t, options(in, steps...))
	known := []*pass.Method{prune.L1{}.Method(), quantize.DynamicInt8{}.Method(), sparse.Auto{}.Method()}
	again, err := pass.ParseRecipe(known, []byte(first.Report.Recipe.Text))
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2, 8} {
		o := options(in, again.Steps...)
		o.Workers, o.Output = workers, filepath.Join(t.TempDir(), "out.onnx")
		if got, want := digest(t, run(t, o).Output), digest(t, first.Output); got != want {
			t.Errorf("%d workers: %s, want %s", workers, got, want)
		}
	}
}

func TestWeightsThatCannotBeTakenAreSkipped(t *testing.T) {
	in := take(t, "nonfinite.onnx")
	for _, m := range []*pass.Method{quantize.DynamicInt8{}.Method(), quantize.WeightInt8{}.Method(),
		quantize.Float16{}.Method(), prune.L1{}.Method(), prune.Random{}.Method()} {
		t.Run(m.Name, func(t *testing.T) {
			o := options(in, step(t, m))
			o.Label = m.Name
			var reasons []string
			for _, row := range run(t, o).Report.Ledger {
				if strings.Contains(row.Why(), "NaN") || strings.Contains(row.Why(), "infinit") {
					reasons = append(reasons, row.Why())
				}
			}
			if len(reasons) != 2 {
				t.Errorf("reasons %q, want one for NaN and one for infinities", reasons)
			}
		})
	}
}

func TestNothingLargerIsWritten(t *testing.T) {
	in := take(t, "qdq.onnx")
	r := run(t, options(in, step(t, quantize.DynamicInt8{}.Method())))
	if got, want := digest(t, r.Output), digest(t, in); got != want {
		t.Error("a model that nothing changed is not what it was")
	}
}

// A result with smaller weights is not written either if nodes and metadata make the file larger than the source:
// the source is copied, and the ledger has the reason.
func TestFileThatWouldGrowIsTheSource(t *testing.T) {
	copies := 0
	const smallest, largest = 8, 20
	for n := int64(smallest); n <= largest; n++ {
		in := product(t, n)
		r := run(t, options(in, step(t, quantize.Float16{}.Method())))
		isCopy := digest(t, r.Output) == digest(t, in)
		reverted := slices.ContainsFunc(r.Report.Ledger, func(row report.Row) bool {
			return row.Reason.Code == pass.FileLarger
		})
		if isCopy != reverted {
			t.Errorf("%d×%d: the output is the source: %v, file-larger in the ledger: %v", n, n, isCopy, reverted)
		}
		if size := r.Report.Totals.FileBytes; !isCopy && size.After >= size.Before {
			t.Errorf("%d×%d: %d bytes → %d bytes", n, n, size.Before, size.After)
		}
		if isCopy {
			copies++
		}
	}
	if copies == 0 || copies > largest-smallest {
		t.Errorf("%d of %d outputs are the source: both cases must occur", copies, largest-smallest+1)
	}
}

// In a pipeline, later steps have rows of what earlier ones made. If the source is copied, no model has that.
func TestFileThatWouldGrowHasARowForEachWeight(t *testing.T) {
	for _, second := range []*pass.Method{quantize.WeightInt8{}.Method(), quantize.Float16{}.Method()} {
		r := run(t, options(product(t, 8), step(t, prune.L1{}.Method(), "-amount", "0.5"), step(t, second)))
		var got []string
		for _, w := range r.Report.Weights {
			got = append(got, w.Tensor+" "+string(w.Reason.Code))
		}
		if len(got) != 1 || !strings.HasSuffix(got[0], " "+string(pass.FileLarger)) {
			t.Errorf("l1 and %s: weights %q, want one that is %s", second.Name, got, pass.FileLarger)
		}
	}
}

// product writes a model that is one MatMul with a weight of n×n.
func product(t *testing.T, n int64) string {
	t.Helper()
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: n}}}
	g.Inputs = []*ir.Value{x}
	w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{n, n}},
		Source: ir.Mem(bytes.Repeat([]byte{0, 0, 128, 63}, int(n*n)))})
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{x, w}))
	path := filepath.Join(t.TempDir(), "product.onnx")
	if _, err := onnx.Save(context.Background(), m, path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAGateThatDoesNotHoldRejects(t *testing.T) {
	in := take(t, "mlp.onnx")
	o := options(in, step(t, quantize.DynamicInt8{}.Method()))
	o.Gates = []report.Limit{{Name: "min-ratio", Bound: 10}}
	r := run(t, o)
	if got, want := files(t, in), []string{"mlp.onnx", "mlp.small.rejected.onnx"}; !slices.Equal(got, want) ||
		!r.Rejected {
		t.Errorf("files %v, rejected %v; want %v", got, r.Rejected, want)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	in := take(t, "external.onnx", "external_a.bin", "external_b.bin")
	before := files(t, in)
	o := options(in, step(t, quantize.DynamicInt8{}.Method()))
	o.DryRun, o.Reports = true, []string{"json"}
	dry := run(t, o)
	if got := files(t, in); !slices.Equal(got, before) {
		t.Fatalf("files %v, want %v", got, before)
	}
	o.DryRun, o.Reports = false, nil
	wet := run(t, o)
	if dry.Report.Totals.FileBytes != wet.Report.Totals.FileBytes {
		t.Errorf("a dry run reports %+v, the run %+v", dry.Report.Totals.FileBytes, wet.Report.Totals.FileBytes)
	}
}

func TestTheInputIsSafe(t *testing.T) {
	in := take(t, "external.onnx", "external_a.bin", "external_b.bin")
	dir := filepath.Dir(in)
	data := filepath.Join(dir, "out.onnx.data")
	if err := os.Link(filepath.Join(dir, "external_a.bin"), data); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{in, filepath.Join(dir, ".", "external.onnx"), filepath.Join(dir, "out.onnx")} {
		before := digest(t, in) + digest(t, data)
		o := options(in, step(t, quantize.DynamicInt8{}.Method()))
		o.Output = out
		if _, err := job.Run(context.Background(), o); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want an error of one line", out, err)
		}
		if digest(t, in)+digest(t, data) != before {
			t.Fatalf("%s: the input was overwritten", out)
		}
	}
}

func TestAnErrorLeavesTheOldOutput(t *testing.T) {
	in := take(t, "mlp.onnx")
	old := filepath.Join(filepath.Dir(in), "mlp.small.onnx")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := job.Run(ctx, options(in, step(t, quantize.DynamicInt8{}.Method()))); err == nil {
		t.Fatal("a run that was cancelled gave no error")
	}
	b, err := os.ReadFile(old)
	if err != nil || !bytes.Equal(b, []byte("old")) {
		t.Errorf("the old output is %q, %v", b, err)
	}
	if got, want := files(t, in), []string{"mlp.onnx", "mlp.small.onnx"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// Example quantizes a model and prints its file sizes.
func Example() {
	dir, err := os.MkdirTemp("", "job")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := pass.NewStep(quantize.DynamicInt8{}.Method(), func(*flag.FlagSet) error { return nil })
	if err != nil {
		panic(err)
	}
	r, err := job.Run(context.Background(), job.Options{
		Input: filepath.Join(fixtures, "mlp.onnx"), Output: filepath.Join(dir, "mlp.int8.onnx"),
		Steps: []pass.Options{s}, Workers: 2, Memory: 64 << 20,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Report.Totals.FileBytes.Before, "bytes,", len(r.Report.Ledger), "rows")
	// Output: 547869 bytes, 6 rows
}
