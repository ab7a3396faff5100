package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/engine"
	"github.com/mcompress/mcompress/engine/ort"
	"github.com/mcompress/mcompress/internal/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Trained models give what ONNX Runtime gives, on the inputs that come with them or else on
// random ones. What ONNX Runtime does not run need not run here.
func TestRealModelsAgreeWithONNXRuntime(t *testing.T) {
	agree(t, conform.RealModels(t))
}

// So do the repository's own models.
func TestFixturesAgreeWithONNXRuntime(t *testing.T) {
	agree(t, conform.Fixtures(t))
}

func agree(t *testing.T, paths []string) {
	lib, err := ort.Load(conform.ORTLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if name == "model.onnx" {
			name = filepath.Base(filepath.Dir(path))
		}
		t.Run(name, func(t *testing.T) {
			switch err := compare(lib, path); {
			case errors.Is(err, errNotRun):
				t.Log(err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// errNotRun says that ONNX Runtime itself does not run a model.
var errNotRun = errors.New("ONNX Runtime does not run it")

func compare(lib *ort.Library, path string) error {
	// Without precise mode, 8-bit products saturate in 16 bits on CPUs without VNNI.
	judge, err := ort.Open(lib, path, ort.Options{Threads: 1, Config: map[string]string{"session.x64quantprecision": "1"}})
	if err != nil {
		if judge, err = ort.Open(lib, path, ort.Options{Threads: 1}); err != nil {
			return fmt.Errorf("%w: %v", errNotRun, err)
		}
	}
	defer judge.Close()
	f, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 2})
	if err != nil {
		return err
	}
	defer e.Close()
	batch, err := sample(f.Model.Graph, path)
	if err != nil {
		return err
	}
	want, err := judge.Run(context.Background(), batch.Inputs, nil)
	if err != nil {
		return fmt.Errorf("%w: %v", errNotRun, err)
	}
	got, err := e.Run(context.Background(), batch.Inputs, nil)
	if err != nil {
		return err
	}
	for name, w := range want {
		if err := near(w, got[name]); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
	}
	return nil
}

// sample is the recorded input beside the model, or a random one.
func sample(g *ir.Graph, path string) (*dataset.Batch, error) {
	set, err := dataset.Generate(dataset.Inputs(g), dataset.Random{})
	if recorded := filepath.Join(filepath.Dir(path), "test_data_set_0"); err == nil {
		if _, missing := os.Stat(recorded); missing == nil {
			set, err = dataset.Open(recorded, dataset.Inputs(g), dataset.Outputs(g), dataset.Options{})
		}
	}
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for b, err := range set.Batches(context.Background(), dataset.Order{Size: 1}) {
		return b, err
	}
	return nil, fmt.Errorf("no sample")
}

// near compares with 1e-4 of the largest magnitude of the output: single elements near zero are what is left
// over when large numbers cancel. 16-bit floats may round to their neighbour.
func near(want, got *ir.Array) error {
	tol := tolerance{Relative: 1e-4, Absolute: 1e-6}
	switch want.DType {
	case ir.Float16:
		tol.Relative = 1e-3
	case ir.BFloat16:
		tol.Relative = 1e-2
	}
	if want.Kind == ir.Dense {
		for _, x := range numbers(want) {
			if !math.IsInf(x, 0) && !math.IsNaN(x) {
				tol.Absolute = max(tol.Absolute, tol.Relative*math.Abs(x))
			}
		}
	}
	return tol.differ(want, got)
}
