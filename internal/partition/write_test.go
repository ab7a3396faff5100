package partition_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/onnx"
)

func fixture(name string) string { return filepath.Join("..", "..", "fixtures", name+".onnx") }

// A single stage is the model itself: metadata, functions, sparse initializers, opsets and all other
// properties are preserved.
func TestOneStageIsTheWhole(t *testing.T) {
	w := conform.Start(t)
	for _, path := range conform.Fixtures(t) {
		if label(path) == "unsorted.onnx" {
			continue // stages are sorted
		}
		dir, written := split(t, path, 1)
		if err := w.EqualValues(path, filepath.Join(dir, written.Chain.Stages[0].File)); err != nil {
			t.Errorf("%s: %v", label(path), err)
		}
	}
}

// Properties of the model are in every stage; functions are in the stages that call them.
func TestStagesKeepModelProperties(t *testing.T) {
	for _, name := range []string{"transformer", "function_argument", "gemm"} {
		whole, err := onnx.Open(fixture(name))
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		dir, w := split(t, fixture(name), 2)
		functions := 0
		for _, s := range w.Chain.Stages {
			f, err := onnx.Open(filepath.Join(dir, s.File))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Model.IRVersion != whole.Model.IRVersion || !slices.EqualFunc(f.Model.Meta, whole.Model.Meta, sameEntry) ||
				f.Model.Opset("") != whole.Model.Opset("") {
				t.Errorf("%s: %s has other model properties", name, s.File)
			}
			functions = max(functions, len(f.Model.Functions))
		}
		if len(w.Chain.Stages) != 2 || functions != len(whole.Model.Functions) {
			t.Errorf("%s: %d stages, up to %d of %d functions", name, len(w.Chain.Stages), functions, len(whole.Model.Functions))
		}
	}
}

// External data stays external, in a file named after the stage.
func TestExternalData(t *testing.T) {
	dir, w := split(t, fixture("external"), 3)
	total := int64(0)
	for _, s := range w.Chain.Stages {
		for _, p := range s.Parts {
			st, err := os.Stat(filepath.Join(dir, p.Name))
			if err != nil || st.Size() != p.Size {
				t.Errorf("%s: %v, want %d bytes", p.Name, err, p.Size)
			}
			if strings.HasSuffix(p.Name, ".data") {
				total += p.Size
			}
		}
	}
	weights := int64(0)
	for _, s := range w.Plan.Stages {
		weights += s.Weights
	}
	if total < weights/2 || len(entries(t, dir)) != 6 {
		t.Errorf("%d bytes of external data for %d of weights, files %v", total, weights, entries(t, dir))
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// All files appear or none: here the manifest cannot be renamed.
func TestAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "mlp.stages.json")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := partition.Write(t.Context(), fixture("mlp"), dir, partition.Options{Stages: 2, By: "weights"}, save())
	if err == nil || !strings.HasPrefix(err.Error(), blocked+": ") {
		t.Errorf("got %v", err)
	}
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("there are %v", got)
	}
}

func TestNothingIsWrittenOverTheModelsData(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"external.onnx", "external_a.bin", "external_b.bin"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "fixtures", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "external_a.bin"), filepath.Join(dir, "external.stage1.onnx")); err != nil {
		t.Fatal(err)
	}
	_, err := partition.Write(t.Context(), filepath.Join(dir, "external.onnx"), dir,
		partition.Options{Stages: 2, By: "weights"}, save())
	if err == nil || !strings.Contains(err.Error(),
		"external.stage1.onnx: the output would replace a file that the run reads") {
		t.Errorf("got %v", err)
	}
}

func TestWritingWhereThereIsNoFolder(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	_, err := partition.Write(t.Context(), fixture("mlp"), nowhere, partition.Options{Stages: 2, By: "weights"}, save())
	if err == nil || err.Error() != filepath.Join(nowhere, "mlp.stage1.onnx")+": no such file or directory" {
		t.Errorf("got %v", err)
	}
}
