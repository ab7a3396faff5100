package mcompress_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

func step(t *testing.T, name string, options ...pass.Option) pass.Options {
	t.Helper()
	for _, m := range mcompress.Methods() {
		if m.Name != name {
			continue
		}
		s, err := pass.NewStep(m, nil)
		if err == nil {
			s, err = pass.Preset(s, options)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Fatalf("no method %q", name)
	return nil
}

func fixture(name string) string { return filepath.Join("fixtures", name) }

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCompressVerifiesAndReports(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.onnx")
	res, err := mcompress.Request{
		Models: []string{fixture("cnn.onnx")}, Output: out, Steps: []mcompress.Step{step(t, "weight-int8")},
		Verification: mcompress.Verification{Data: mcompress.Data{Path: fixture("digits_test.npz"), Limit: 100}},
		Gates:        []mcompress.Gate{mcompress.MinRatio(2), mcompress.MaxAccuracyDrop(0.02)},
	}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r := res.Report
	if res.Rejected || res.Output != out || len(res.Reports) > 0 {
		t.Errorf("got %+v", res)
	}
	if r.Verification == nil || r.Verification.Accuracy == nil || r.Verification.Data.Samples != 100 || len(r.Gates) != 2 {
		t.Errorf("got %+v, gates %v", r.Verification, r.Gates)
	}
	if b := r.Totals.FileBytes; b.After >= b.Before || b.After != int64(len(read(t, out))) {
		t.Errorf("got %+v", b)
	}
}

func TestGateThatDoesNotHoldRejectsTheResult(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.onnx")
	_, err := mcompress.Request{
		Models: []string{fixture("mlp.onnx")}, Output: out, Steps: []mcompress.Step{step(t, "weight-int8")},
		Gates: []mcompress.Gate{mcompress.MinRatio(50)},
	}.Run(context.Background())
	var rejected *mcompress.RejectedError
	if !errors.As(err, &rejected) || filepath.Base(rejected.Result.Output) != "out.rejected.onnx" ||
		mcompress.ExitCode(err) != mcompress.ExitGate {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "min-ratio") {
		t.Errorf("%q does not name the gate", text)
	}
}

// Data of the run reaches steps that have none of their own.
func TestDataIsForCalibration(t *testing.T) {
	bytesOf := func(data string, steps ...mcompress.Step) []byte {
		out := filepath.Join(t.TempDir(), "out.onnx")
		r := mcompress.Request{Models: []string{fixture("cnn.onnx")}, Output: out, Steps: steps,
			Data: mcompress.Data{Path: data}}
		r.Verification.Skip = true
		if _, err := r.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return read(t, out)
	}
	data := fixture("digits_test.npz")
	own := bytesOf("", step(t, "static-int8", pass.Option{Name: "data", Value: data}))
	if !bytes.Equal(bytesOf(data, step(t, "static-int8")), own) {
		t.Error("the data of the request and the option data give other results")
	}
	if bytes.Equal(bytesOf("", step(t, "static-int8")), own) {
		t.Error("the data changes nothing")
	}
}

func TestModelsOutsideOfFilesGiveTheSameResult(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	want := filepath.Join(dir, "external.onnx")
	if _, err := mcompress.Compress(ctx, fixture("external.onnx"), want, step(t, "weight-int8")); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range []string{"external.onnx", "external_a.bin", "external_b.bin"} {
		files["in/"+name] = &fstest.MapFile{Data: read(t, fixture(name))}
	}
	m, err := mcompress.OpenFS(files, "in/external.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	res, err := m.RunTo(ctx, zipped{z}, "external.onnx",
		mcompress.Request{Steps: []mcompress.Step{step(t, "weight-int8")},
			Reports: mcompress.Reports{Formats: []string{"json"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if res.Output != "external.onnx" || !slices.Equal(res.Reports, []string{"external.report.json"}) {
		t.Errorf("got %+v", res)
	}
	r, err := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"external.onnx", "external.onnx.data"} {
		got, err := r.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(got)
		if err != nil || !bytes.Equal(b, read(t, filepath.Join(dir, name))) {
			t.Errorf("%s: another file than Compress writes: %v", name, err)
		}
	}
	// The archive can be opened in turn.
	again, err := mcompress.OpenFS(r, "external.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := m.Verify(ctx, again, mcompress.Request{}); err != nil || v.Skipped != "" || v.Worst() == nil {
		t.Errorf("got %+v, %v", v, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// zipped are the entries of an archive.
type zipped struct{ *zip.Writer }

func (z zipped) Create(name string) (io.WriteCloser, error) {
	w, err := z.Writer.Create(name)
	return entry{w}, err
}

type entry struct{ io.Writer }

func (entry) Close() error { return nil }

func TestInvalidRequestsAreErrors(t *testing.T) {
	ctx, out, model := context.Background(), filepath.Join(t.TempDir(), "out.onnx"), fixture("mlp.onnx")
	same := filepath.Join(t.TempDir(), "same.onnx")
	if err := os.WriteFile(same, read(t, model), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*mcompress.Request)
		fields []string // nil for an error of an option
	}{
		"no model":  {func(r *mcompress.Request) { r.Models = nil }, []string{"Models"}},
		"nil step":  {func(r *mcompress.Request) { r.Steps = []mcompress.Step{nil} }, []string{"Steps"}},
		"no method": {func(r *mcompress.Request) { r.Steps = []mcompress.Step{stranger{}} }, []string{"Steps"}},
		"same file": {func(r *mcompress.Request) { r.Models, r.Output = []string{same}, same }, nil},
		"order": {func(r *mcompress.Request) {
			r.Steps = []mcompress.Step{step(t, "weight-int8"), step(t, "l1")}
		}, nil},
		"target":       {func(r *mcompress.Request) { r.Target = "none" }, []string{"Target"}},
		"report":       {func(r *mcompress.Request) { r.Reports.Formats = []string{"pdf"} }, []string{"Reports.Formats"}},
		"unknown gate": {func(r *mcompress.Request) { r.Gates = []mcompress.Gate{{Name: "min-luck"}} }, []string{"Gates"}},
		"random inputs": {func(r *mcompress.Request) {
			r.Gates = []mcompress.Gate{mcompress.MinSQNR(1)}
		}, []string{"Gates.min-sqnr", "Data", "Verification.AllowRandomInputs"}},
		"data options": {func(r *mcompress.Request) {
			r.Data = mcompress.Data{Path: fixture("digits_test.npz"), Fill: []string{"a"}}
		}, nil},
		"no data": {func(r *mcompress.Request) { r.Data.Mean = []float64{1} }, []string{"Data.Mean", "Data"}},
		"gate without run": {func(r *mcompress.Request) {
			r.Verification.Skip, r.Gates = true, []mcompress.Gate{mcompress.MinSQNR(1)}
		}, []string{"Gates.min-sqnr", "Verification.Skip"}},
		"steps and search": {func(r *mcompress.Request) {
			r.Steps, r.Search = []mcompress.Step{step(t, "weight-int8")}, &mcompress.Search{MaxSize: 1}
		}, []string{"Search", "Steps"}},
		"goal": {func(r *mcompress.Request) { r.Search = &mcompress.Search{} }, nil},
		"baseline": {func(r *mcompress.Request) {
			r.Gates = []mcompress.Gate{mcompress.MaxBaselineSizeRatio(1)}
		}, []string{"Gates.max-baseline-size-ratio", "Baseline"}},
		"two models pushed": {func(r *mcompress.Request) {
			r.Models, r.Push = []string{model, model}, "dir:x"
		}, nil},
		"workers": {func(r *mcompress.Request) { r.Limits.Workers = -1 }, []string{"Limits.Workers"}},
	} {
		r := mcompress.Request{Models: []string{model}, Output: out}
		c.change(&r)
		_, err := r.Run(ctx)
		var field *mcompress.FieldError
		switch {
		case mcompress.ExitCode(err) != mcompress.ExitUsage:
			t.Errorf("%s: got %v", name, err)
		case c.fields == nil:
		case !errors.As(err, &field) || !slices.Equal(field.Fields(), c.fields):
			t.Errorf("%s: got %v about %v, want %v", name, err, field.Fields(), c.fields)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%s: there is a result", name)
		}
	}
	var format *onnx.FormatError
	if _, err := mcompress.Read(bytes.NewReader([]byte("no model")), 8, "m"); !errors.As(err, &format) {
		t.Errorf("got %v", err)
	}
}

// stranger is no method of the package.
type stranger struct{ pass.Options }

func (stranger) Method() *pass.Method { return nil }

func TestFineTuneAndDistill(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var steps int64
	r := mcompress.Request{
		Models: []string{fixture("cnn.onnx")}, Output: filepath.Join(dir, "tuned.onnx"),
		Data: mcompress.Data{Path: fixture("digits_test.npz"), Limit: 64},
		Events: mcompress.Events{Progress: func(p mcompress.Progress) {
			if p.Stage == mcompress.StageTrain {
				steps = max(steps, p.Done)
			}
		}},
	}
	few := pass.Option{Name: "steps", Value: "2"}
	r.Steps = []mcompress.Step{step(t, "finetune", few), step(t, "weight-int8")}
	res, err := r.FineTune(ctx)
	if err != nil || len(res.Report.Training) != 1 || steps != 2 {
		t.Errorf("%d steps: got %+v, %v", steps, res, err)
	}
	r.Models, r.Output = nil, filepath.Join(dir, "student.onnx")
	r.Steps = []mcompress.Step{step(t, "channel"), step(t, "distill", few)}
	res, err = r.Distill(ctx, fixture("cnn.onnx"))
	if err != nil || len(res.Report.Training) != 1 || res.Report.Training[0].Metric != "" ||
		res.Report.Totals.FileBytes.After >= res.Report.Totals.FileBytes.Before {
		t.Errorf("got %+v, %v", res, err)
	}
}

// The metric of the library chooses the weights that training keeps.
func TestMetricOfTheLibraryChoosesWeights(t *testing.T) {
	calls := 0
	e := mcompress.Evaluator(func(context.Context, mcompress.EvaluatorFiles) (mcompress.EvaluatorValue, error) {
		calls++
		return mcompress.EvaluatorValue{Name: "mine", Value: -float64(calls), HigherIsBetter: true}, nil
	})
	for name, v := range map[string]mcompress.Verification{"f1": {Metric: "f1"}, "mine": {Evaluator: e}} {
		res, err := mcompress.Request{
			Models: []string{"fixtures/mlp.onnx"}, Output: filepath.Join(t.TempDir(), "tuned.onnx"),
			Steps: []mcompress.Step{distill.FineTune{Steps: 2}},
			Data:  mcompress.Data{Path: "fixtures/digits_test.npz"}, Verification: v,
		}.FineTune(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		training := res.Report.Training[0]
		if training.Metric != name || len(training.ValidationMetric) != 2 || res.Report.Verification.Metric.Name != name {
			t.Errorf("%s: %+v", name, training)
		}
		if name == "mine" && training.Kept != 0 {
			t.Errorf("weights of step %d were kept, although the value decreases", training.Kept)
		}
	}
}

// An evaluator of the library measures both models, and the gate on its drop rejects.
func TestEvaluatorOfTheLibrary(t *testing.T) {
	calls := 0
	e := mcompress.Evaluator(func(_ context.Context, f mcompress.EvaluatorFiles) (mcompress.EvaluatorValue, error) {
		calls++
		value := mcompress.EvaluatorValue{Name: "mine", Value: 1, HigherIsBetter: true}
		if f.Candidate != f.Reference {
			value.Value = 0.25
		}
		_, err := os.Stat(f.Data)
		return value, err
	})
	r := mcompress.Request{
		Models: []string{"fixtures/mlp.onnx"}, Output: filepath.Join(t.TempDir(), "small.onnx"),
		Steps:        []mcompress.Step{quantize.DynamicInt8{}},
		Verification: mcompress.Verification{Evaluator: e, AllowRandomInputs: true},
		Gates:        []mcompress.Gate{mcompress.MaxMetricDrop(0.5)},
	}
	_, err := r.Run(t.Context())
	var rejected *mcompress.RejectedError
	if !errors.As(err, &rejected) || calls != 2 {
		t.Fatalf("got %v after %d calls", err, calls)
	}
	if m := rejected.Result.Report.Verification.Metric; m.Name != "mine" || *m.Before != 1 || *m.After != 0.25 {
		t.Errorf("got %+v", m)
	}
	r.Verification.Evaluator, r.Verification.Metric = nil, "embedding-cosine"
	if res, err := r.Run(t.Context()); err != nil {
		t.Errorf("got %+v, %v", res, err)
	}
	for _, v := range []mcompress.Verification{{Metric: "f1", Evaluator: e}, {}, {Metric: "f1"}, {Metric: "x"}} {
		v.AllowRandomInputs, r.Verification = true, v
		var invalid *mcompress.FieldError
		if _, err := r.Run(t.Context()); !errors.As(err, &invalid) {
			t.Errorf("%+v: got %v", v, err)
		}
	}
}

// TestOptionsSetFields gives options and steps in one list, and the ones that Verify takes.
func TestOptionsSetFields(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.onnx")
	data := mcompress.WithDataset(mcompress.Data{Path: fixture("digits_test.npz"), Limit: 50})
	res, err := mcompress.Compress(t.Context(), fixture("mlp.onnx"), out, quantize.DynamicInt8{}, data,
		mcompress.WithGates(mcompress.MinSQNR(10)), mcompress.WithReports("json"))
	if err != nil || res.Rejected || len(res.Reports) != 1 || res.Report.Verification.Data.Samples != 50 {
		t.Fatalf("got %+v, %v", res, err)
	}
	c, err := mcompress.Verify(t.Context(), fixture("mlp.onnx"), out, data, mcompress.WithGates(mcompress.MinSQNR(200)))
	if err != nil || len(c.Outputs) != 1 || c.Passed() {
		t.Errorf("a gate of 200 dB holds: %+v, %v", c, err)
	}
	if _, err := mcompress.Verify(t.Context(), fixture("mlp.onnx"), out,
		mcompress.WithGates(mcompress.MaxSize(1))); mcompress.ExitCode(err) != mcompress.ExitUsage {
		t.Errorf("a gate on files: %v", err)
	}
	if _, err := mcompress.Compress(t.Context(), fixture("mlp.onnx"),
		out, nil); mcompress.ExitCode(err) != mcompress.ExitUsage {
		t.Errorf("nil: %v", err)
	}
	var none mcompress.Option
	if _, err := mcompress.Compress(t.Context(), fixture("mlp.onnx"), out, none, mcompress.WithVerify(false)); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

// TestOptionsOfSamplesWithoutVerification leaves options of samples that nothing reads alone.
func TestOptionsOfSamplesWithoutVerification(t *testing.T) {
	r := mcompress.Request{
		Models: []string{fixture("mlp.onnx")}, Output: filepath.Join(t.TempDir(), "out.onnx"),
		Steps:        []mcompress.Step{quantize.WeightInt8{}},
		Verification: mcompress.Verification{Data: mcompress.Data{Layout: "hwc"}},
	}
	if _, err := r.Run(t.Context()); mcompress.ExitCode(err) != mcompress.ExitUsage {
		t.Errorf("a layout without data: %v", err)
	}
	r.Verification.Skip = true
	if _, err := r.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEachOptionSetsItsField compares requests with options and with fields.
func TestEachOptionSetsItsField(t *testing.T) {
	d := mcompress.Data{Path: "test.npz"}
	for name, c := range map[string]struct {
		option mcompress.Option
		want   mcompress.Request
	}{
		"WithData": {mcompress.WithData("test.npz"), mcompress.Request{Data: d}},
		"WithTestData": {mcompress.WithTestData(d),
			mcompress.Request{Verification: mcompress.Verification{Data: d}}},
		"WithAllowRandomInputs": {mcompress.WithAllowRandomInputs(),
			mcompress.Request{Verification: mcompress.Verification{AllowRandomInputs: true}}},
		"WithVerify": {mcompress.WithVerify(true), mcompress.Request{Verification: mcompress.Verification{Force: true}}},
		"WithTarget": {mcompress.WithTarget("ort"), mcompress.Request{Target: "ort"}},
		"WithReports": {mcompress.WithReports("json"),
			mcompress.Request{Reports: mcompress.Reports{Formats: []string{"json"}}}},
	} {
		var r mcompress.Request
		c.option(&r)
		if !reflect.DeepEqual(r, c.want) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

// TestGatesHaveConstructors compares the gates of the constructors with those that there are.
func TestGatesHaveConstructors(t *testing.T) {
	var made []string
	for _, g := range []mcompress.Gate{
		mcompress.MinCoverage(1), mcompress.MinRatio(1), mcompress.MaxSize(1), mcompress.MinSQNR(1), mcompress.MinCosine(1),
		mcompress.MinAgreement(1),
		mcompress.MaxAccuracyDrop(1), mcompress.MaxMetricDrop(1), mcompress.MaxLatencyRatio(1),
		mcompress.MaxBaselineSizeRatio(1),
		mcompress.MaxBaselineMetricDrop(1), mcompress.MaxBaselineLatencyRatio(1),
	} {
		if g.Bound != 1 {
			t.Errorf("%s has the bound %v", g.Name, g.Bound)
		}
		made = append(made, g.Name)
	}
	if !slices.Equal(made, report.GateNames()) {
		t.Errorf("got %v, want %v", made, report.GateNames())
	}
}
