package mcompress_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/registry"
)

// Unpack keeps a file of external data that has the size of the one in the container, and other content.
func TestUnpackKeepsOtherFiles(t *testing.T) {
	packed, dir := filepath.Join(t.TempDir(), "e.mcz"), t.TempDir()
	if _, err := mcompress.Pack(t.Context(), fixture("external.onnx"), packed, mcompress.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(fixture("external_b.bin"))
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(content)
	changed[len(changed)-1] ^= 1
	path := filepath.Join(dir, "external_b.bin")
	if err := os.WriteFile(path, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "external.onnx")
	var conflict *registry.ConflictError
	if _, err := mcompress.Unpack(t.Context(), packed, nil, out, mcompress.UnpackOptions{}); !errors.As(err, &conflict) {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if got, readErr := os.ReadFile(path); !bytes.Equal(got, changed) || len(entries) != 1 || errors.Join(err, readErr) != nil {
		t.Errorf("the file is changed, or others are left: %v, %v", entries, err)
	}
	if _, err := mcompress.Unpack(t.Context(), packed, nil, out, mcompress.UnpackOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); !bytes.Equal(got, content) || err != nil {
		t.Errorf("the file is not replaced: %v", err)
	}
}
