package registry_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"github.com/mcompress/mcompress/registry"
)

// Read and Open return content that is verified to the end: other bytes, fewer and more are errors, however the reader
// is used.
func TestStoredContentIsVerified(t *testing.T) {
	content := []byte("content of a file")
	sum := sha256.Sum256(content)
	f := registry.File{Name: "m.onnx", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	for name, served := range map[string][]byte{
		"same":    content,
		"changed": bytes.Replace(content, []byte("f"), []byte("g"), 1),
		"shorter": content[:5],
		"longer":  append(bytes.Clone(content), '.'),
		"empty":   nil,
	} {
		s := registry.NewStored(registry.Reference{}, nil,
			func(context.Context, registry.File, int64) (io.ReadCloser, int64, error) {
				return io.NopCloser(bytes.NewReader(served)), 0, nil
			})
		var wrong *registry.ContentError
		got, err := s.Read(t.Context(), f, 100)
		if right := name == "same"; right && (err != nil || !bytes.Equal(got, content)) || !right && !errors.As(err, &wrong) {
			t.Errorf("%s: read %q, %v", name, got, err)
		}
	}
	s := registry.NewStored(registry.Reference{}, nil,
		func(context.Context, registry.File, int64) (io.ReadCloser, int64, error) {
			t.Error("a file above the limit is opened")
			return nil, 0, io.EOF
		})
	var large *registry.ContentError
	if _, err := s.Read(t.Context(), f, f.Size-1); !errors.As(err, &large) {
		t.Errorf("a file above the limit: %v", err)
	}
}
