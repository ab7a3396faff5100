package job

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/onnx"
)

// A Backend runs models: ONNX Runtime where Library is set, else the engine of this program.
type Backend struct {
	Library *ort.Library
	Workers int
	// Memory is bytes for the weights of a model; the engine reads those beyond half of it for
	// each run. 0 is no limit.
	Memory int64
}

// Embedded reports whether it is the engine of this program, which lets values inside a graph
// be fetched.
func (b Backend) Embedded() bool { return b.Library == nil }

// String names what runs.
func (b Backend) String() string {
	if b.Embedded() {
		return "the embedded engine"
	}
	return "ONNX Runtime " + b.Library.Version
}

// Open makes f ready to run; values called as in keep may be fetched, too. done ends the session.
// A panic is a bug of the engine's and nothing against the model.
func (b Backend) Open(ctx context.Context, f *onnx.File, keep []string) (s engine.Session, done func() error, err error) {
	defer bugs(&err)
	if b.Embedded() {
		e, err := engine.Open(ctx, f.Model, engine.Options{Workers: b.Workers, MemoryLimit: b.Memory, Keep: keep})
		if err != nil {
			return nil, nil, err
		}
		return e, e.Close, nil
	}
	o, err := ort.Open(b.Library, f.Path, ort.Options{Threads: b.Workers})
	if err != nil {
		return nil, nil, err
	}
	return o, o.Close, nil
}

// bugs turns a panic into an error.
func bugs(err *error) {
	if bug := recover(); bug != nil {
		*err = &refusal{fmt.Errorf("a bug in the engine: %v", bug)}
	}
}

// named calls use with f under a path where ONNX Runtime finds its data: those of a model that is
// not published yet have temporary names.
func (b Backend) named(f *onnx.File, use func(*onnx.File) error) error {
	if b.Embedded() || !f.External() {
		return use(f)
	}
	dir, err := os.MkdirTemp(filepath.Dir(f.Path), ".mcompress-run-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := f.Link(dir)
	if err != nil {
		return err
	}
	linked := *f
	linked.Path = path
	return use(&linked)
}
