package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// untrainable are models whose weights are quantized or sparse, so that nothing but biases is trained, which are not
// pruned, and one whose loss is NaN before the first step, which is an error.
var untrainable = map[string]bool{"nonfinite.onnx": true, "qdq.onnx": true, "sparse_constant.onnx": true,
	"sparse_initializer.onnx": true}

// trainable returns the models whose weights can be trained, with a folder of random samples for each.
func trainable(t *testing.T, models []string) (sources, samples []string) {
	t.Helper()
	for _, m := range models {
		if code, _, _ := call("memory", "--training", "--loss", "mse", "--quiet", m); code != exitDone ||
			untrainable[filepath.Base(m)] {
			continue
		}
		if dir := randomSamples(t, m); dir != "" {
			sources, samples = append(sources, m), append(samples, dir)
		}
	}
	if len(sources) < 8 {
		t.Errorf("%d models can be trained: %v", len(sources), sources)
	}
	return sources, samples
}

// randomSamples writes random inputs of a model as a folder of .npy; none if the first axis of an input does not count
// samples.
func randomSamples(t *testing.T, model string) string {
	t.Helper()
	f, err := onnx.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set, err := dataset.Generate(dataset.Inputs(f.Model.Graph),
		dataset.Random{Samples: 12, Ranges: dataset.Ranges(f.Model), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	all, first := map[string]*ir.Array{}, int64(0)
	for b, err := range set.Batches(t.Context(), dataset.Order{Size: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range b.Inputs {
			if len(a.Shape) == 0 || first != 0 && a.Shape[0] != first {
				return ""
			}
			first = a.Shape[0]
			if all[name] == nil {
				all[name] = &ir.Array{DType: a.DType, Shape: append([]int64{0}, a.Shape[1:]...)}
			}
			all[name].Shape[0] += first
			all[name].Data = append(all[name].Data, a.Data...)
		}
	}
	dir := prepared(t, "samples")
	for name, a := range all {
		descr := map[ir.DType]string{ir.Float: "<f4", ir.Int64: "<i8"}[a.DType]
		if descr == "" {
			return ""
		}
		if err := os.WriteFile(filepath.Join(dir, name+".npy"), append(dataset.NPYHeader(descr, a.Shape), a.Data...),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
