package mcompress_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize"
)

// TestSamplesFromMemory verifies a result on samples that the program makes, and an evaluator that reads their arrays.
func TestSamplesFromMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.npz")
	labels := []int64{3, 1, 4, 1, 5, 9}
	err := mcompress.WriteArrays(path, func(yield func(map[string]*ir.Array) bool) {
		for i := 0; i < len(labels); i += 2 {
			images := make([]float32, 2*400)
			for k := range images {
				images[k] = float32((k*7+i)%11) / 11
			}
			x := map[string]*ir.Array{"input": ir.ArrayOf(images, 2, 1, 20, 20), "labels": ir.ArrayOf(labels[i:i+2], 2)}
			if !yield(x) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	back, err := mcompress.ReadArrays(path)
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(back)), []string{"input", "labels"}) {
		t.Fatalf("got %v, %v", back, err)
	}
	if got := ir.View[int64](back["labels"]); !slices.Equal(got, labels) ||
		!slices.Equal(back["input"].Shape, []int64{6, 1, 20, 20}) {
		t.Errorf("got %v, %v", got, back["input"].Shape)
	}
	seen := 0
	r := mcompress.Request{
		Models: []string{fixture("mlp.onnx")}, Output: filepath.Join(t.TempDir(), "out.onnx"),
		Steps: []mcompress.Step{quantize.WeightInt8{}}, Data: mcompress.Data{Path: path},
	}
	r.Verification.Evaluator = func(_ context.Context, f mcompress.EvaluatorFiles) (mcompress.EvaluatorValue, error) {
		data, err := mcompress.ReadArrays(f.Data)
		if err != nil {
			return mcompress.EvaluatorValue{}, err
		}
		seen = int(data["labels"].Shape[0])
		return mcompress.EvaluatorValue{Name: "mine", Value: 1}, nil
	}
	res, err := r.Run(t.Context())
	if err != nil || res.Report.Verification.Data.Samples != len(labels) || seen != len(labels) {
		t.Errorf("%d labels: got %+v, %v", seen, res, err)
	}
}

// TestSamplesThatDoNotFit writes nothing.
func TestSamplesThatDoNotFit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.npz")
	err := mcompress.WriteArrays(path, func(yield func(map[string]*ir.Array) bool) {
		yield(map[string]*ir.Array{"a": ir.NewArray(ir.Float, 2, 3), "b": ir.NewArray(ir.Float, 3)})
	})
	if _, missing := os.Stat(path); err == nil || !errors.Is(missing, os.ErrNotExist) {
		t.Errorf("got %v, %v", err, missing)
	}
}

// TestZeroValues calls each method of the zero values of a model and a session.
func TestZeroValues(t *testing.T) {
	var m mcompress.Model
	var s mcompress.Session
	for name, err := range map[string]error{
		"Compress":   second(m.Compress(t.Context(), "out.onnx")),
		"Verify":     second(m.Verify(t.Context(), &m, mcompress.Request{})),
		"Inspect":    second(m.Inspect(t.Context(), mcompress.InspectOptions{})),
		"PlanMemory": second(m.PlanMemory(t.Context(), mcompress.MemoryOptions{})),
		"NewSession": second(m.NewSession(t.Context(), mcompress.SessionOptions{})), "Run": second(s.Run(t.Context(), nil)),
		"NewDecoding": second(s.NewDecoding(1)),
	} {
		if err == nil {
			t.Errorf("%s of a zero value is no error", name)
		}
	}
	if m.IR() != nil || m.Close() != nil || s.Inputs() != nil || s.Outputs() != nil || s.Close() != nil {
		t.Error("a zero value has contents")
	}
}

func second[T any](_ T, err error) error { return err }
