package opset_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/onnx"
)

// targets are the opsets that compression forms ask for.
var targets = []int64{11, 13, 16, 18, 21}

// raiseFile writes the model at path to out, raised.
func raiseFile(t *testing.T, path, out string, to int64) error {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	m := f.Model
	if err := opset.Raise(context.Background(), e, m, to); err != nil {
		return err
	}
	if err := m.Verify(); err != nil {
		t.Fatal(err)
	}
	// Initializers need not be inputs from IR 4 on; new constants are none.
	m.IRVersion = max(m.IRVersion, 4, opset.IRVersion(to))
	o := onnx.SaveOptions{Workers: 1, Memory: 1 << 28, Eval: e}
	if _, err := onnx.Save(context.Background(), m, out, o); err != nil {
		t.Fatal(err)
	}
	return nil
}

// refused are the shared models that hold operators of no standard.
var refused = map[string]bool{"style_candy": true}

func TestSharedModelsGiveTheSameOutputs(t *testing.T) {
	w := conform.Start(t)
	paths, err := filepath.Glob(filepath.Join(conform.Shared(t), "fixtures", "models", "*", "*", "model.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d models: %v", len(paths), err)
	}
	dir := t.TempDir()
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		for _, to := range targets {
			out := filepath.Join(dir, "raised.onnx")
			err := raiseFile(t, path, out, to)
			var no *opset.Unsupported
			if refused[name] && errors.As(err, &no) {
				continue
			}
			if err != nil {
				t.Errorf("%s to %d: %v", name, to, err)
				continue
			}
			compare(t, w, path, out, name, to)
		}
	}
}

// compare demands equal outputs, bit for bit: the same kernels run in either.
func compare(t *testing.T, w *conform.Worker, path, out, name string, to int64) {
	t.Helper()
	outputs, err := w.Compare(path, out, conform.Options{Level: "none"})
	if err != nil {
		t.Errorf("%s to %d: %v", name, to, err)
		return
	}
	for _, o := range outputs {
		if !o.Equal {
			t.Errorf("%s to %d: output %s: %+v", name, to, o.Name, o)
		}
	}
	if err := w.Check(path, true); err != nil {
		return
	}
	if err := w.Check(out, true); err != nil {
		t.Errorf("%s to %d: %v", name, to, err)
	}
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }
