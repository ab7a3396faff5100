//go:build noort

package ort_test

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/ort"
)

func TestLoadWithoutONNXRuntime(t *testing.T) {
	lib, err := ort.Load("libonnxruntime.so")
	if lib != nil || err == nil || !strings.Contains(err.Error(), "built without ONNX Runtime") {
		t.Errorf("got %v, %v", lib, err)
	}
}
