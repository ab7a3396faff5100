package job_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// verified are the options of a run that runs its result.
func verified(t *testing.T, input string, methods ...*pass.Method) job.Options {
	t.Helper()
	var steps []pass.Options
	for _, m := range methods {
		steps = append(steps, step(t, m))
	}
	o := options(input, steps...)
	o.Verify = &job.Verification{Backend: job.Backend{Workers: 2, Limits: memory.Limits{Memory: 64 << 20}},
		Layers: true, Digest: true}
	return o
}

// breakingMethod is the option struct of a method that calls a function on the main graph.
type breakingMethod struct {
	pass.Selection
	method *pass.Method
	do     func(g *ir.Graph)
}

func (o breakingMethod) Method() *pass.Method { return o.method }

func (o breakingMethod) Run(_ context.Context, s *pass.Step) error {
	o.do(s.Model.Graph)
	for _, v := range s.Model.Graph.Consts() {
		s.Ledger.Changed(v, v.Const, pass.Consumers(v), pass.Row{Form: pass.InPlace})
		break
	}
	return nil
}

func breaking(do func(g *ir.Graph)) *pass.Method {
	m := &pass.Method{Name: "breaking", Stage: pass.Quantize}
	m.New = func() pass.Options { return &breakingMethod{method: m, do: do} }
	return m
}

func TestTheReportContainsTheVerification(t *testing.T) {
	r := run(t, verified(t, take(t, "cnn.onnx"), quantize.WeightInt8{}.Method()))
	v := r.Report.Verification
	if v == nil || v.Skipped != "" || r.NotRun != "" || len(v.Outputs) != 1 || len(v.Layers) < 5 || v.Breaks == nil {
		t.Fatalf("got %+v", v)
	}
	if e := v.Outputs[0].Errors; e.SQNR == nil || *e.SQNR < 20 || *e.SQNR > 80 || v.Data.Samples < 2 || !v.Data.Generated {
		t.Errorf("got %+v on %+v", e, v.Data)
	}
	if a := r.Report.Totals.Activations; a == nil || a.Before < 20*20*4 {
		t.Errorf("activations %+v", a)
	}
}

func TestVerificationOnDataWithLabels(t *testing.T) {
	in := take(t, "cnn.onnx", "digits_test.npz")
	o := verified(t, in, quantize.WeightInt8{}.Method())
	o.Verify.Data.Path = filepath.Join(filepath.Dir(in), "digits_test.npz")
	o.Verify.Data.Batch = 50
	o.Gates = []report.Limit{{Name: "max-accuracy-drop", Bound: 0.02}, {Name: "min-agreement", Bound: 0.9}}
	v := run(t, o).Report.Verification
	w := conform.Start(t)
	want, err := w.Accuracy(in, o.Verify.Data.Path, "labels", conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Accuracy == nil || *v.Accuracy.Before != want || v.Data.Samples != 500 {
		t.Errorf("got %+v on %+v, ONNX Runtime has %v right", v.Accuracy, v.Data, want)
	}
	if v.Data.Name != "digits_test.npz" || v.Data.SHA256 != digest(t, o.Verify.Data.Path) || v.Data.Labels != nil {
		t.Errorf("got %+v", v.Data)
	}
	labels := filepath.Join(filepath.Dir(in), "labels-idx1-ubyte")
	if err := os.WriteFile(labels, append([]byte{0, 0, 8, 1, 0, 0, 500 >> 8, 500 & 255}, make([]byte, 500)...),
		0o644); err != nil {
		t.Fatal(err)
	}
	o.Verify.Data.Options.Labels, o.Gates = labels, nil
	if got := run(t, o).Report.Verification.Data.Labels; got == nil ||
		*got != (verification.File{Name: filepath.Base(labels), SHA256: digest(t, labels)}) {
		t.Errorf("got labels %+v", got)
	}
}

func TestAGateOnRunningRejects(t *testing.T) {
	in := take(t, "external.onnx", "external_a.bin", "external_b.bin")
	o := verified(t, in, quantize.DynamicInt8{}.Method())
	o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 200}}
	o.Reports = []string{"json"}
	r := run(t, o)
	want := []string{"external.onnx", "external.small.rejected.environment.json", "external.small.rejected.onnx",
		"external.small.rejected.onnx.data", "external.small.rejected.report.json", "external_a.bin", "external_b.bin"}
	if got := files(t, in); !slices.Equal(got, want) || !r.Rejected {
		t.Fatalf("files %v, rejected %v; want %v", got, r.Rejected, want)
	}
	if g := r.Report.Gates[0]; g.Held || g.Value == nil || *g.Value > 200 {
		t.Errorf("got %+v", g)
	}
	f, err := onnx.Open(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if parts := f.Parts(); len(parts) != 2 || parts[1].Name != "external.small.rejected.onnx.data" {
		t.Errorf("its data is in %+v", parts)
	}
}

func TestADryRunLeavesGatesOnRunningOpen(t *testing.T) {
	in := take(t, "mlp.onnx")
	o := verified(t, in, quantize.DynamicInt8{}.Method())
	o.DryRun, o.Gates = true, []report.Limit{{Name: "min-sqnr", Bound: 200}}
	r := run(t, o)
	if g := r.Report.Gates[0]; !g.Open || r.Rejected || r.Report.Verification != nil {
		t.Errorf("got %+v, rejected %v", g, r.Rejected)
	}
}

// A result that computes something else is a break, whatever the gates say.
func TestAResultThatDoesNotRunIsNotWritten(t *testing.T) {
	in := take(t, "mlp.onnx")
	for name, do := range map[string]func(*ir.Graph){
		`node "Gemm_h1" (Gemm): `: func(g *ir.Graph) {
			for _, v := range g.Consts() {
				if len(v.Const.Shape) == 2 {
					v.SetConst(&ir.Tensor{Spec: ir.Spec{Name: v.Name, DType: ir.Float, Shape: []int64{3, 5}},
						Source: ir.Mem(make([]byte, 60))})
				}
			}
		},
		`output "logits" of the first model is missing`: func(g *ir.Graph) { g.Outputs[0].Name = "others" },
	} {
		_, err := job.Run(t.Context(), verified(t, in, breaking(do)))
		if err == nil || !strings.Contains(err.Error(), "the source runs, the result fails: "+name) ||
			!strings.Contains(err.Error(), "--no-verify") {
			t.Errorf("got %v, want that %s", err, name)
		}
		if got := files(t, in); !slices.Equal(got, []string{"mlp.onnx"}) {
			t.Errorf("files %v", got)
		}
	}
}

// An index that the result computes, at which it fails, is no fault of the program.
func TestAResultThatFailsForItsValuesIsNoInternalError(t *testing.T) {
	in := take(t, "mlp.onnx")
	_, err := job.Run(t.Context(), verified(t, in, breaking(func(g *ir.Graph) {
		table := g.AddConst("table", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1}}, Source: make(ir.Mem, 4)})
		for n := range g.Nodes() {
			if n.Op.Is("Relu") {
				index := g.Insert(n, "Cast", []*ir.Value{n.Input(0)}, ir.IntAttr("to", int64(ir.Int64)))
				n.SetInput(0, g.Insert(n, "Add", []*ir.Value{n.Input(0), g.Insert(n, "Gather", []*ir.Value{table, index})}))
				break
			}
		}
	})))
	var values *job.ValuesError
	if !errors.As(err, &values) || errors.As(err, new(*ir.Bug)) {
		t.Errorf("got %v", err)
	}
	if got := files(t, in); !slices.Equal(got, []string{"mlp.onnx"}) {
		t.Errorf("files %v", got)
	}
}

// custom writes a model with an operator of a custom domain.
func custom(t *testing.T) string {
	t.Helper()
	f, err := onnx.Open(filepath.Join(fixtures, "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Model.Opsets = append(f.Model.Opsets, ir.Opset{Domain: "my.domain", Version: 1})
	for n := range f.Model.Graph.Nodes() {
		if n.Op.Type == "Relu" {
			n.Op = ir.OpID{Domain: "my.domain", Type: "MyRelu"}
		}
	}
	eval := ir.NewEval("")
	defer eval.Close()
	path := filepath.Join(t.TempDir(), "custom.onnx")
	if _, err := onnx.Save(t.Context(), f.Model, path,
		onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: eval}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnsupportedOperatorsSkipVerification(t *testing.T) {
	in := custom(t)
	r := run(t, verified(t, in, quantize.DynamicInt8{}.Method()))
	if !strings.Contains(r.NotRun, "(my.domain.MyRelu): operator of opset 1 is not supported by the engine") ||
		r.Report.Verification.Skipped != r.NotRun || r.Rejected {
		t.Errorf("got %q, rejected %v", r.NotRun, r.Rejected)
	}
	o := verified(t, in, quantize.DynamicInt8{}.Method())
	o.Gates = []report.Limit{{Name: "min-sqnr", Bound: 1}}
	r = run(t, o)
	if g := r.Report.Gates[0]; !r.Rejected || g.Held || !strings.Contains(g.Reason, "MyRelu") {
		t.Errorf("a gate that cannot be evaluated: %+v, rejected %v", g, r.Rejected)
	}
	if v, err := job.Verify(t.Context(), in, r.Output, job.Verification{}); err == nil ||
		!strings.Contains(err.Error(), "MyRelu") {
		t.Errorf("verify: %+v, %v", v, err)
	}
	o = verified(t, in, quantize.DynamicInt8{}.Method())
	o.Verify.Required = true
	if _, err := job.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not verified: ") ||
		!strings.Contains(err.Error(), "MyRelu") {
		t.Errorf("required verification: got %v", err)
	}
}

// A comparison that was requested raises a default memory limit as far as needed, and has a note; a default one is
// skipped. A limit that was given is never raised.
func TestRequestedVerificationRaisesTheMemoryLimit(t *testing.T) {
	in := take(t, "cnn.onnx")
	small := memory.Limits{Memory: 16 << 10}
	o := verified(t, in, quantize.DynamicInt8{}.Method())
	o.Verify.Backend.Limits = small
	r := run(t, o)
	if !strings.Contains(r.NotRun, "16 KiB") {
		t.Errorf("got %q", r.NotRun)
	}
	v, err := job.Verify(t.Context(), in, r.Output, job.Verification{Backend: job.Backend{Workers: 1, Limits: small}})
	if err != nil || len(v.Outputs) == 0 || len(v.Notes) != 1 ||
		!strings.HasPrefix(v.Notes[0], "the memory limit of each model was raised from 16 KiB to ") {
		t.Errorf("got %+v, %v", v, err)
	}
	small.Fixed = true
	v, err = job.Verify(t.Context(), in, r.Output, job.Verification{Backend: job.Backend{Workers: 1, Limits: small}})
	if err == nil || !strings.Contains(err.Error(), "the memory limit of the run is 16 KiB") {
		t.Errorf("a limit that was given: got %+v, %v", v, err)
	}
}

// A model of more nodes than the steps of a default run is not even prepared for a run.
func TestManyNodesSkipVerification(t *testing.T) {
	o := verified(t, take(t, "cnn.onnx"), quantize.DynamicInt8{}.Method())
	o.Verify.Backend.Limits.Steps = 2
	if r := run(t, o); !strings.HasSuffix(r.NotRun,
		"nodes and initializers; without --verify a run is limited to 2 steps") {
		t.Errorf("got %q", r.NotRun)
	}
}

// Invalid random inputs skip verification; invalid data of the user is an error.
func TestInputsRejectedByTheSource(t *testing.T) {
	in := take(t, "transformer.onnx")
	o := verified(t, in, quantize.DynamicInt8{}.Method())
	o.Verify.Data.Options.Fill = map[string]float64{"input_ids": 1e6}
	r := run(t, o)
	if !strings.Contains(r.NotRun, "it does not run on random inputs; use --data: node \"Gather_tokens\" (Gather): "+
		"index 1000000") {
		t.Errorf("got %q", r.NotRun)
	}
	_, err := job.Verify(t.Context(), in, r.Output, *o.Verify)
	if err == nil || !strings.Contains(err.Error(), "transformer.onnx: it does not run on random inputs; use --data") {
		t.Errorf("verify: got %v", err)
	}
	o = verified(t, in, quantize.DynamicInt8{}.Method())
	o.Verify.Data.Path = filepath.Join(fixtures, "digits_test.npz")
	if _, err := job.Run(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "digits_test.npz: no array for input") {
		t.Errorf("got %v", err)
	}
}

func TestVerifyComparesWithRecordedOutputs(t *testing.T) {
	folder := filepath.Join(conform.Shared(t), "fixtures", "models", "vision", "mnist_sigmoid")
	in := filepath.Join(folder, "model.onnx")
	v := job.Verification{Data: job.Data{Path: filepath.Join(folder, "test_data_set_0")}}
	r, err := job.Verify(t.Context(), in, "", v)
	if err != nil || r.Beyond != "" || r.Outputs[0].Errors.DB() < 80 {
		t.Errorf("got %+v, %v", r, err)
	}
	impossible := -1.0
	v.Tolerance = verify.Tolerance{Absolute: &impossible}
	if r, err = job.Verify(t.Context(), in, "", v); err != nil || !strings.Contains(r.Beyond, "sample 0: output ") {
		t.Errorf("got %+v, %v", r, err)
	}
	_, err = job.Verify(t.Context(), filepath.Join(fixtures, "mlp.onnx"), "", job.Verification{})
	if err == nil || !strings.Contains(err.Error(), "with data") {
		t.Errorf("without data: got %v", err)
	}
}

func TestCancellingWhileResultsRun(t *testing.T) {
	in := take(t, "mlp.onnx")
	ctx, cancel := context.WithCancel(t.Context())
	o := verified(t, in, quantize.DynamicInt8{}.Method())
	o.Progress = func(done, total int64) {
		if done == total {
			cancel()
		}
	}
	if _, err := job.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := files(t, in); !slices.Equal(got, []string{"mlp.onnx"}) {
		t.Errorf("files %v", got)
	}
}

// Both backends run an output whose external data file still has a temporary name.
func TestONNXRuntimeRunsOutputsBeforeTheyAreSaved(t *testing.T) {
	lib, err := ort.Load(conform.ORTLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{{"external.onnx", "external_a.bin", "external_b.bin"}, {"cnn.onnx"}} {
		in := take(t, names...)
		o := verified(t, in, quantize.WeightInt8{}.Method())
		o.Verify.Layers, o.Verify.Backend.Library = false, lib
		r := run(t, o)
		v := r.Report.Verification
		if v.Skipped != "" || v.Backend != "ONNX Runtime "+lib.Version || v.Outputs[0].Errors.DB() < 10 {
			t.Errorf("%s: got %+v", names[0], v)
		}
		for _, left := range files(t, in) {
			if strings.HasPrefix(left, ".") {
				t.Errorf("temporary file left: %s", left)
			}
		}
		own := run(t, verified(t, in, quantize.WeightInt8{}.Method())).Report.Verification
		if a, b := v.Outputs[0].Errors.DB(), own.Outputs[0].Errors.DB(); v.Data.Samples == own.Data.Samples &&
			(a-b > 1 || b-a > 1) {
			t.Errorf("%s: %v dB, and %v dB in the engine of this program", names[0], a, b)
		}
	}
}

// Real models still run when they were compressed; those that were not run say why.
func TestRealModelsRunWhenTheyAreCompressed(t *testing.T) {
	if testing.Short() {
		t.Skip("it compresses and runs all shared models")
	}
	dir := t.TempDir()
	for _, in := range conform.RealModels(t) {
		name := filepath.Base(filepath.Dir(in))
		t.Run(name, func(t *testing.T) {
			o := verified(t, in, quantize.WeightInt8{}.Method())
			o.Output = filepath.Join(dir, name+".onnx")
			r := run(t, o)
			_, err := os.Stat(r.Output)
			known := strings.Contains(r.NotRun, "(onnx.brevitas.") ||
				strings.Contains(r.NotRun, "it does not run on random inputs")
			if err != nil || r.NotRun != "" && !known {
				t.Errorf("not run: %s; %v", r.NotRun, err)
			}
		})
	}
}

func TestIntegersStayInTheTablesOfTheModel(t *testing.T) {
	f, err := onnx.Open(filepath.Join(fixtures, "transformer.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set, err := job.Data{Batch: 3, Options: dataset.Options{Dims: map[string]int64{"sequence": 50}}}.Open(f.Model, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	most := int64(0)
	for b, err := range set.Batches(t.Context(), dataset.Order{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ir.View[int64](b.Inputs["input_ids"]) {
			if most = max(most, id); id < 0 || id > 255 {
				t.Fatalf("%d is outside of a table of 256", id)
			}
		}
	}
	if most < 200 {
		t.Errorf("of 300 numbers below 256 the largest is %d", most)
	}
}

// Classes of training and of test data are numbered together, in training and in verification; the recipe has the
// names that the training data lacks, and so reproduces the training.
func TestClassesOfTrainingAndTest(t *testing.T) {
	in := take(t, "mlp.onnx")
	table := func(name string, labels ...string) string {
		path := filepath.Join(filepath.Dir(in), name)
		text := strings.Repeat("u,", 400) + "labels\n"
		for _, label := range labels {
			text += strings.Repeat("0.5,", 400) + label + "\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		training, test []string
		note, recipe   string
	}{
		{[]string{"dog", "cat", "dog", "cat"}, []string{"cat", "ant", "bee"}, `classes: 0 "ant", 1 "bee", 2 "cat", 3 "dog"`,
			"classes: ant,bee,cat,dog"},
		{[]string{"dog", "cat", "ant", "cat"}, []string{"dog"}, `classes: 0 "ant", 1 "cat", 2 "dog"`, ""},
	} {
		training, test := table("training.csv", tt.training...), table("test.csv", tt.test...)
		o := options(in, step(t, distill.FineTune{}.Method(), "--data", training, "--reshape", "1,20,20", "--steps", "1",
			"--batch", "2", "--lr", "0.001", "--validate", "0"))
		o.Verify = &job.Verification{Force: true, Data: job.Data{Path: test, Classes: &job.Data{Path: training},
			Options: dataset.Options{Reshape: []int64{1, 20, 20}}}}
		r := run(t, o).Report
		if notes := strings.Join(r.Verification.Notes, "\n"); !strings.Contains(notes, tt.note) {
			t.Errorf("notes %q, want %q", notes, tt.note)
		}
		if got := r.Recipe.Text; tt.recipe != "" && !strings.Contains(got, tt.recipe) || tt.recipe == "" &&
			strings.Contains(got, "classes") {
			t.Errorf("recipe\n%swant %q", got, tt.recipe)
		}
	}
	for _, tt := range []struct {
		training, test []string
		want           string
	}{
		{[]string{"0", "1", "0", "1"}, []string{"ant", "bee"}, `label "ant" is not a number`},
		{[]string{"dog", "cat", "dog", "cat"}, []string{"0", "1"}, "give --classes cat,dog"},
	} {
		training, test := table("training.csv", tt.training...), table("test.csv", tt.test...)
		o := options(in, step(t, distill.FineTune{}.Method(), "--data", training, "--reshape", "1,20,20", "--steps", "1",
			"--batch", "2", "--lr", "0.001", "--validate", "0"))
		o.Verify = &job.Verification{Force: true, Required: true,
			Data: job.Data{Path: test, Classes: &job.Data{Path: training},
				Options: dataset.Options{Reshape: []int64{1, 20, 20}}}}
		if _, err := job.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("labels %v of a test set whose training data has %v: %v", tt.test, tt.training, err)
		}
	}
}
