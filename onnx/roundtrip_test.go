package onnx

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Open → Save without a pass is lossless: equal as protobuf messages, payloads inline
// and outside. A model that Open refuses must be one that ONNX refuses too.

func TestRoundTripOfFixtures(t *testing.T) { roundTrip(t, conform.Fixtures(t)) }

func TestRoundTripOfSharedModels(t *testing.T) {
	many(t)
	roundTrip(t, conform.ModelsBelow(t, filepath.Join(conform.Shared(t), "fixtures")))
}

func TestRoundTripOfConformanceArchives(t *testing.T) {
	many(t)
	for _, name := range []string{"onnx_node_tests.zip", "onnx_backend_other.zip"} {
		roundTrip(t, conform.ModelsBelow(t, unzip(t, filepath.Join(conform.Shared(t), "fixtures", "conformance", name))))
	}
}

// many skips t in short runs, as those of the race detector are: many models.
func many(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("many models: left to runs without -short")
	}
}

func TestRoundTripOfEveryForm(t *testing.T) {
	paths, err := conform.Start(t).GenerateSet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, paths)
}

func roundTrip(t *testing.T, paths []string) {
	w := conform.Start(t)
	opened := 0
	for _, path := range paths {
		name := filepath.Base(path)
		if name == "model.onnx" {
			name = filepath.Base(filepath.Dir(path))
		}
		t.Run(name, func(t *testing.T) {
			if w.Parses(path) != nil {
				refused(t, w, path)
				return
			}
			if f, err := Open(path); err != nil {
				oneLine(t, err)
				refused(t, w, path)
			} else {
				f.Close()
				opened++
				bothWays(t, w, path)
			}
		})
	}
	if opened*2 < len(paths) {
		t.Errorf("%d of %d models opened", opened, len(paths))
	}
}

// refused holds Open's refusal against onnx.checker's. The checker takes tensors of
// types that it does not know; TestElementTypesAreONNXs compares ours with ONNX's list.
func refused(t *testing.T, w *conform.Worker, path string) {
	t.Helper()
	_, err := Open(path)
	if err == nil {
		t.Fatal("ONNX cannot parse the file, but Open took it")
	}
	var fe *FormatError
	if errors.As(err, &fe) && strings.HasPrefix(fe.Msg, "data_type ") {
		return
	}
	if w.Check(path, false) == nil {
		t.Errorf("onnx.checker accepts a model that Open refuses: %v", err)
	}
}

// bothWays saves the model inline, with external data, and the latter inline again.
func bothWays(t *testing.T, w *conform.Worker, path string) {
	dir := t.TempDir()
	inline, outside, back := filepath.Join(dir, "inline.onnx"), filepath.Join(dir, "outside.onnx"),
		filepath.Join(dir, "back.onnx")
	o := options(t)
	f := mustOpen(t, path)
	mustSave(t, f.Model, inline, o)
	o.External = true
	mustSave(t, f.Model, outside, o)
	o.External = false
	mustSave(t, mustOpen(t, outside).Model, back, o)

	equal := w.Equal
	if f.External() {
		equal = w.EqualValues // a typed field next to external data has moved into raw_data
	}
	if err := equal(path, inline); err != nil {
		t.Errorf("inline: %v", err)
	}
	for _, p := range []string{outside, back} {
		if err := w.EqualValues(path, p); err != nil {
			t.Errorf("%s: %v", filepath.Base(p), err)
		}
	}
}

// oneLine reports an error that is not one line.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("error of several lines: %q", err)
	}
}
