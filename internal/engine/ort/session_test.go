//go:build !noort

package ort_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/ir"
)

var _ engine.Session = (*ort.Session)(nil)

func library(t *testing.T) *ort.Library {
	t.Helper()
	lib, err := ort.Load(conform.ORTLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func open(t *testing.T, path string, o ort.Options) *ort.Session {
	t.Helper()
	s, err := ort.Open(library(t), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// parsed is a session on a graph in ONNX's text syntax.
func parsed(t *testing.T, graph string) *ort.Session {
	t.Helper()
	return open(t, written(t, graph), ort.Options{Threads: 1})
}

// written is a file with that graph.
func written(t *testing.T, graph string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := conform.Start(t).ParseText(`<ir_version: 13, opset_import: ["" : 25, "ai.onnx.ml" : 3]> `+graph,
		path); err != nil {
		t.Fatal(err)
	}
	return path
}

func runs(t *testing.T, s *ort.Session, in map[string]*ir.Array, fetch ...string) map[string]*ir.Array {
	t.Helper()
	out, err := s.Run(context.Background(), in, fetch)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
