package mcompress_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
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
	res, err := mcompress.Compress(context.Background(), fixture("cnn.onnx"), out, step(t, "weight-int8"),
		mcompress.WithTestData(mcompress.Data{Path: fixture("digits_test.npz"), Limit: 100}), mcompress.WithGates(mcompress.MinRatio(2), mcompress.MaxAccuracyDrop(0.02)))
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
	res, err := mcompress.Compress(context.Background(), fixture("mlp.onnx"), out, step(t, "weight-int8"), mcompress.WithGates(mcompress.MinRatio(50)))
	if err != nil || !res.Rejected || filepath.Base(res.Output) != "out.rejected.onnx" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// Data of the run reaches steps that have none of their own.
func TestDataIsForCalibration(t *testing.T) {
	bytesOf := func(steps ...mcompress.Step) []byte {
		out := filepath.Join(t.TempDir(), "out.onnx")
		if _, err := mcompress.Compress(context.Background(), fixture("cnn.onnx"), out, append(steps, mcompress.WithVerify(false))...); err != nil {
			t.Fatal(err)
		}
		return read(t, out)
	}
	data := fixture("digits_test.npz")
	own := bytesOf(step(t, "static-int8", pass.Option{Name: "data", Value: data}))
	if !bytes.Equal(bytesOf(step(t, "static-int8"), mcompress.WithData(data)), own) {
		t.Error("WithData and the option data give other results")
	}
	if bytes.Equal(bytesOf(step(t, "static-int8")), own) {
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
	res, err := m.CompressTo(ctx, zipped{z}, "external.onnx", step(t, "weight-int8"), mcompress.WithReports("json"))
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
	if v, err := m.Verify(ctx, again); err != nil || v.Skipped != "" || v.Worst() == nil {
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

func TestZeroValuesAreErrors(t *testing.T) {
	ctx, out := context.Background(), filepath.Join(t.TempDir(), "out.onnx")
	var none mcompress.Option
	if _, err := mcompress.Compress(ctx, fixture("mlp.onnx"), out, none); err != nil {
		t.Errorf("a nil option: %v", err)
	}
	for name, args := range map[string]struct {
		in, out string
		steps   []mcompress.Step
	}{
		"nil step":      {fixture("mlp.onnx"), out, []mcompress.Step{nil}},
		"no method":     {fixture("mlp.onnx"), out, []mcompress.Step{stranger{}}},
		"no output":     {fixture("mlp.onnx"), "", nil},
		"same file":     {out, out, nil},
		"order":         {fixture("mlp.onnx"), out, []mcompress.Step{step(t, "weight-int8"), step(t, "l1")}},
		"target":        {fixture("mlp.onnx"), out, []mcompress.Step{mcompress.WithTarget("none")}},
		"report":        {fixture("mlp.onnx"), out, []mcompress.Step{mcompress.WithReports("pdf")}},
		"gate":          {fixture("mlp.onnx"), out, []mcompress.Step{mcompress.WithVerify(false), mcompress.WithGates(mcompress.MinSQNR(1))}},
		"random inputs": {fixture("mlp.onnx"), out, []mcompress.Step{mcompress.WithGates(mcompress.MinSQNR(1))}},
		"data options":  {fixture("mlp.onnx"), out, []mcompress.Step{mcompress.WithDataset(mcompress.Data{Mean: "a"})}},
	} {
		var option *pass.OptionError
		if _, err := mcompress.Compress(ctx, args.in, args.out, args.steps...); !errors.As(err, &option) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var format *onnx.FormatError
	if _, err := mcompress.Read(bytes.NewReader([]byte("no model")), 8, "m"); !errors.As(err, &format) {
		t.Errorf("got %v", err)
	}
}

// stranger is no method of the package.
type stranger struct{}

func (stranger) Method() *pass.Method { return nil }

func TestFineTuneAndDistill(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var steps int64
	options := []mcompress.Step{
		mcompress.WithDataset(mcompress.Data{Path: fixture("digits_test.npz"), Limit: 64}),
		mcompress.WithProgress(func(p mcompress.Progress) {
			if p.Stage == "train" {
				steps = p.Done
			}
		}),
	}
	few := pass.Option{Name: "steps", Value: "2"}
	tuned := filepath.Join(dir, "tuned.onnx")
	res, err := mcompress.FineTune(ctx, fixture("cnn.onnx"), tuned, append(options, step(t, "finetune", few), step(t, "weight-int8"))...)
	if err != nil || len(res.Report.Training) != 1 || steps != 2 {
		t.Errorf("%d steps: got %+v, %v", steps, res, err)
	}
	student := filepath.Join(dir, "student.onnx")
	res, err = mcompress.Distill(ctx, fixture("cnn.onnx"), "", student, append(options, step(t, "channel"), step(t, "distill", few))...)
	if err != nil || len(res.Report.Training) != 1 || res.Report.Training[0].Metric != "" || res.Report.Totals.FileBytes.After >= res.Report.Totals.FileBytes.Before {
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
	for name, option := range map[string]mcompress.Option{"f1": mcompress.WithMetric("f1"), "mine": mcompress.WithEvaluator(e)} {
		out := filepath.Join(t.TempDir(), "tuned.onnx")
		few := distill.FineTune{Steps: 2}
		res, err := mcompress.FineTune(t.Context(), "fixtures/mlp.onnx", out, few, mcompress.WithData("fixtures/digits_test.npz"), option)
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
	out := filepath.Join(t.TempDir(), "small.onnx")
	res, err := mcompress.Compress(t.Context(), "fixtures/mlp.onnx", out, quantize.DynamicInt8{}, mcompress.WithEvaluator(e), mcompress.WithGates(mcompress.MaxMetricDrop(0.5)), mcompress.WithAllowRandomInputs())
	if err != nil || !res.Rejected || calls != 2 {
		t.Fatalf("got %+v after %d calls, %v", res, calls, err)
	}
	if m := res.Report.Verification.Metric; m.Name != "mine" || *m.Before != 1 || *m.After != 0.25 {
		t.Errorf("got %+v", m)
	}
	res, err = mcompress.Compress(t.Context(), "fixtures/mlp.onnx", out, quantize.DynamicInt8{}, mcompress.WithMetric("embedding-cosine"), mcompress.WithGates(mcompress.MaxMetricDrop(0.5)), mcompress.WithAllowRandomInputs())
	if err != nil || res.Rejected {
		t.Errorf("got %+v, %v", res, err)
	}
	for _, options := range [][]mcompress.Step{
		{mcompress.WithMetric("f1"), mcompress.WithEvaluator(e)}, {mcompress.WithGates(mcompress.MaxMetricDrop(1))}, {mcompress.WithMetric("f1")}, {mcompress.WithMetric("x")},
	} {
		var invalid *pass.OptionError
		if _, err := mcompress.Compress(t.Context(), "fixtures/mlp.onnx", out, options...); !errors.As(err, &invalid) {
			t.Errorf("got %v", err)
		}
	}
}
