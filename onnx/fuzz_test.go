package onnx

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// largestSeed keeps the corpus small enough to mutate.
const largestSeed = 24 << 10

// Whatever the file: Open, Verify, Text, Sort and Save do not panic, what Open refuses is a
// FormatError, and what was saved opens and is saved as the same bytes again.
func FuzzOpen(f *testing.F) {
	for _, path := range conform.Fixtures(f) {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) <= largestSeed {
			f.Add(b)
		}
	}
	for _, tt := range badTensors {
		f.Add(withTensor(tt.tensor))
	}
	for _, tt := range badModels {
		if len(tt.model) <= largestSeed {
			f.Add(tt.model)
		}
	}
	f.Add(withTensor(tensorOf(ir.Float, 1).bytes(tensorRaw, floats(3.4e38)).text(tensorName, "\x1b]0;title\a\r\x00")))
	f.Add(modelOf(message{}.bytes(graphSparse, sparseOf(1<<28))))
	f.Add(modelOf(message{}.bytes(graphInput, infoOf("x", 0, math.MaxInt64)).bytes(graphNode,
		nodeOf("Relu", []string{"x"}, []string{"y"}))))
	f.Add(doubling(10))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeBytes(b, t.TempDir())
		if err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("%T is no FormatError: %v", err, err)
			}
			return
		}
		verified := m.Verify() == nil
		_ = m.Text(context.Background(), options(t).Eval, io.Discard) // may fail on a payload, may not panic
		first, err := saved(t, m)
		if err != nil {
			return // a payload that cannot be decoded shows when it is read
		}
		again := mustOpen(t, first)
		if (again.Model.Verify() == nil) != verified {
			t.Errorf("Verify returns %v after a round trip", again.Model.Verify())
		}
		second, err := saved(t, again.Model)
		if err != nil {
			t.Fatal(err)
		}
		sameFile(t, first, second)
		if err := m.Graph.Sort(); err == nil && verified {
			if err := m.Verify(); err != nil {
				t.Errorf("sorted: %v", err)
			}
		}
	})
}

func saved(t *testing.T, m *ir.Model) (string, error) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	_, err := Save(context.Background(), m, path, options(t))
	return path, err
}

func sameFile(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}
