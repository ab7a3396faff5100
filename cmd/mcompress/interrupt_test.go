package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands check the context while they read a model, before they find that this one is malformed.
func TestCommandsStopWhileReadingAModel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{
		"inspect", "inspect --text", "memory", "memory --training", "memory --split 2", "split", "verify", "report", "bench --profile",
		"quantize", "quantize --auto --target-ratio 2", "prune", "sparse",
	} {
		dir := t.TempDir()
		model := filepath.Join(dir, "m.onnx")
		if err := os.WriteFile(model, []byte("malformed"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append(strings.Fields("mcompress "+command), model)
		if command == "verify" || command == "report" {
			args = append(args, model)
		}
		var stdout, stderr bytes.Buffer
		if code := run(ctx, args, &stdout, &stderr); code != exitIO || stderr.String() != "mcompress: interrupted\n" {
			t.Errorf("%s: exit code %d, stderr %q", command, code, stderr.String())
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 1 {
			t.Errorf("%s: files left: %v", command, files)
		}
	}
}
