package registry_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/internal/pack"
	"github.com/mcompress/mcompress/registry"
)

// collected returns the names of the files of a model in a folder.
func collected(t *testing.T, model string, files map[string]string) (string, error) {
	t.Helper()
	a, err := registry.Collect(t.Context(), filepath.Join(registrytest.Written(t, files), model),
		registry.CollectOptions{})
	if err != nil {
		return "", err
	}
	return registrytest.Names(a.Files), nil
}

// Files of other models, and of earlier results, are left out.
func TestCollectInAFolderOfModels(t *testing.T) {
	mlp := registrytest.Read(t, filepath.Join("..", "fixtures", "mlp.onnx"))
	files := map[string]string{
		"a.onnx": mlp, "a.report.md": "", "a.int8.onnx": mlp, "a.int8.report.md": "", "a.int8.environment.json": "",
		"b.onnx": mlp, "b.report.md": "", "b.sig": "",
		"notes.txt": "",
	}
	const alone = "model:a.int8.onnx report-md:a.int8.report.md"
	if got, err := collected(t, "a.int8.onnx", files); got != alone || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	files["config.json"], files["README.md"], files[".hidden"] = "{}", "", ""
	if got, err := collected(t, "a.int8.onnx",
		files); got != "model:a.int8.onnx card:README.md config:config.json config:notes.txt report-md:a.int8.report.md" ||
		err != nil {
		t.Errorf("with configuration: got %s, %v", got, err)
	}
	files["genai_config.json"] = `{"model": {"decoder": {"filename": "a.int8.onnx"}, "embedding": {"filename": "b.onnx"}}}`
	want := "model:a.int8.onnx card:README.md data:b.onnx config:config.json config:genai_config.json config:notes.txt " +
		"report-md:a.int8.report.md"
	if got, err := collected(t, "a.int8.onnx", files); got != want || err != nil {
		t.Errorf("with two models: got %s, %v", got, err)
	}
	if got, err := collected(t, "a.onnx", files); strings.Contains(got, "b.onnx") || err != nil {
		t.Errorf("a model that the configuration does not name: got %s, %v", got, err)
	}
}

// A report has to be that of the model.
func TestCollectComparesTheReport(t *testing.T) {
	mlp := registrytest.Read(t, filepath.Join("..", "fixtures", "mlp.onnx"))
	for report, want := range map[string]string{
		`{"ledger": [{"a": []}], "result": {"files": [{"name": "m.onnx", "sha256": "` + registrytest.Sum([]byte(mlp)) +
			`"}]}}`: "",
		`{"result": {"files": [{"name": "m.onnx"}]}}`: "", // --digest none
		`{"result": {"files": [{"name": "m.onnx", "sha256": "` + registrytest.Sum(nil) +
			`"}]}}`: "it describes another model",
		`{"result": {"files": [{"name": "n.onnx", "sha256": "` + registrytest.Sum(nil) +
			`"}]}}`: "the report does not name m.onnx",
		`{"a": 1}`: "it has no result",
		`[]`:       "not a report",
		`{"a`:      "unexpected EOF",
	} {
		_, err := collected(t, "m.onnx", map[string]string{"m.onnx": mlp, "m.report.json": report})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: got %v", report, err)
		case want != "" && (!registrytest.IsA[*registry.ContentError](err) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v", report, err)
		}
	}
}

func TestCollectOfWhatIsNoModel(t *testing.T) {
	for name, want := range map[string]string{"none.onnx": "no such file", "x.onnx": "x.onnx",
		"folder.onnx": "not a regular file"} {
		dir := registrytest.Written(t, map[string]string{"x.onnx": "not a model", "folder.onnx/x": ""})
		if _, err := registry.Collect(t.Context(), filepath.Join(dir, name), registry.CollectOptions{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dir := registrytest.Written(t,
		map[string]string{"m.onnx": registrytest.Read(t, filepath.Join("..", "fixtures", "mlp.onnx")), "m.sig/x": ""})
	if _, err := registry.Collect(t.Context(), filepath.Join(dir, "m.onnx"),
		registry.CollectOptions{}); !registrytest.IsA[*os.PathError](err) {
		t.Errorf("got %v", err)
	}
}

// Reports may be in a folder of their own.
func TestCollectOfReportsElsewhere(t *testing.T) {
	dir := registrytest.Written(t,
		map[string]string{"m.onnx": registrytest.Read(t, filepath.Join("..", "fixtures", "mlp.onnx")),
			"reports/m.report.md": ""})
	a, err := registry.Collect(t.Context(), filepath.Join(dir, "m.onnx"),
		registry.CollectOptions{ReportDir: filepath.Join(dir, "reports")})
	if err != nil || registrytest.Names(a.Files) != "model:m.onnx report-md:m.report.md" {
		t.Errorf("%v, %v", a, err)
	}
}

func TestCollectIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := registry.Collect(ctx, filepath.Join("..", "fixtures", "mlp.onnx"),
		registry.CollectOptions{Progress: func(done, total int64) {
			cancel()
		}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A packed model is one file; its report is that of the files in it, or that of the packed file.
func TestCollectOfAPackedModel(t *testing.T) {
	mlp := registrytest.Read(t, filepath.Join("..", "fixtures", "mlp.onnx"))
	var out bytes.Buffer
	if _, err := pack.Write(t.Context(), &out,
		[]pack.File{{Name: "m.onnx", Size: int64(len(mlp)), R: strings.NewReader(mlp)}},
		pack.Options{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	for report, want := range map[string]string{
		`{"result": {"files": [{"name": "m.onnx", "sha256": "` + registrytest.Sum([]byte(mlp)) + `"}]}}`: "",
		`{"result": {"files": [{"name": "m.onnx", "sha256": "` + registrytest.Sum(nil) +
			`"}]}}`: "it describes another model",
		`{"result": {"files": [{"name": "m.mcz", "sha256": "` + registrytest.Sum(out.Bytes()) + `"}]}}`: "",
		`{"result": {"files": [{"name": "m.mcz", "sha256": "` + registrytest.Sum([]byte(mlp)) +
			`"}]}}`: "it describes another model",
		`{"result": {"files": [{"name": "other.onnx", "sha256": "` + registrytest.Sum([]byte(mlp)) +
			`"}]}}`: "the report does not name m.onnx",
	} {
		got, err := collected(t, "m.mcz", map[string]string{"m.mcz": out.String(), "m.report.json": report})
		if want == "" && (err != nil || got != "model:m.mcz report-json:m.report.json") ||
			want != "" && (!registrytest.IsA[*registry.ContentError](err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v", report, got, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := registry.Collect(ended, filepath.Join(registrytest.Written(t, map[string]string{"m.mcz": out.String()}),
		"m.mcz"), registry.CollectOptions{}); err == nil {
		t.Error("an interrupted collection has digests")
	}
}
