package mcompress_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress"
)

// Sessions add packed weights to the cache.
func TestSessionWithWeightCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	for range 2 {
		s, err := mcompress.NewSession(t.Context(), "fixtures/mlp.onnx",
			mcompress.SessionOptions{WeightCache: dir, Warning: func(err error) {
				t.Error(err)
			}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("got files %v and error %v, want packed weights and a digest", files, err)
	}
}
