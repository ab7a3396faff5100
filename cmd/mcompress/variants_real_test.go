package main

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Each variant of a trained model runs in ONNX Runtime, with errors on its data within the bound of the variant.
func TestVariantsOfATrainedModel(t *testing.T) {
	w := conform.Start(t)
	shared := filepath.Join(conform.Shared(t), "fixtures")
	model, data, hub := filepath.Join(shared, "models/text/magika_v3_3/model.onnx"),
		filepath.Join(t.TempDir(), "data.npz"), t.TempDir()
	if err := w.Thinned(filepath.Join(shared, "datasets/magika/inputs.npz"), data, 8, 0, "bytes", "label"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "quantize", "--variants", "fp16,int8,uint8,q4,q4f16,q2,q2f16", "-o", hub,
		"--no-verify", "--report", "none", model)
	for suffix, drop := range map[string]float64{
		"": 0, "_fp16": 0, "_quantized": 0.02, "_int8": 0.02, "_uint8": 0.02, "_q4": 0.1, "_q4f16": 0.1, "_q2": 1,
		"_q2f16": 1,
	} {
		before, after, err := w.Measured("top1", model, filepath.Join(hub, "onnx", "model"+suffix+".onnx"), data,
			conform.Options{})
		if err != nil {
			t.Errorf("model%s.onnx: %v", suffix, err)
		} else if before-after > drop || math.IsNaN(after) {
			t.Errorf("model%s.onnx: top-1 accuracy %v, %v of the source", suffix, after, before)
		}
	}
}
