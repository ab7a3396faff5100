package main

import (
	"fmt"
	"path/filepath"
	"testing"
)

// The result of a search for a ratio has at least that ratio to all files of the source, with what a result adds:
// metadata, and the name of its data file at each tensor.
func TestTargetRatio(t *testing.T) {
	long := "a-name-that-is-longer-than-that-of-the-source.onnx"
	for _, c := range []struct {
		model, output string
		options       []string
	}{
		{"mlp.onnx", "q.onnx", nil},
		{"external.onnx", "q.onnx", nil},
		{"external.onnx", long, nil},
		{"external.onnx", long, []string{"--data-files", "2"}},
	} {
		for _, ratio := range []float64{1.5, 2.5, 2.9, 2.95, 2.98, 3} {
			out := filepath.Join(t.TempDir(), c.output)
			args := append([]string{"quantize", "--auto", "--target-ratio", fmt.Sprint(ratio),
				filepath.Join("..", "..", "fixtures", c.model), "-o", out}, c.options...)
			exitsWith(t, 0, args...)
			if bytes := readReport(t, out).Totals.FileBytes; float64(bytes.Before) < ratio*float64(bytes.After) {
				t.Errorf("%v: %v", args, bytes)
			}
		}
	}
}
