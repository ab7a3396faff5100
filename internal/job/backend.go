package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/weightcache"
	"github.com/mcompress/mcompress/onnx"
)

// A Backend runs models: ONNX Runtime where Library is set, else the engine of this program.
type Backend struct {
	Library *ort.Library
	Workers int
	Limits  memory.Limits      // of each of two models
	Cache   *weightcache.Cache // of the engine of this program; nil for none
}

// Embedded reports whether it is the engine of this program, which can also return values inside a graph.
func (b Backend) Embedded() bool { return b.Library == nil }

// String returns the name of the backend.
func (b Backend) String() string {
	if b.Embedded() {
		return "the embedded engine"
	}
	return "ONNX Runtime " + b.Library.Version
}

// Open creates a session of f that can also return the values named in keep. done closes it. A panic is a bug of the
// engine, not an error of the model.
func (b Backend) Open(ctx context.Context, f *onnx.File, keep []string) (s engine.Session,
	done func() error, err error) {
	defer recoverBug(&err)
	if b.Embedded() {
		e, err := b.Cache.Open(ctx, f, engine.Options{Workers: b.Workers, Limits: b.Limits, Keep: keep})
		if err != nil {
			return nil, nil, err
		}
		return e, e.Close, nil
	}
	if f.Packed() {
		return nil, nil, &unrunnableError{
			fmt.Errorf("%s: ONNX Runtime reads no packed models; unpack it first", f.Path)}
	}
	if remote.Is(f.Path) {
		return nil, nil, &remote.PathError{Path: f.Path,
			Err: errors.New("ONNX Runtime reads files on disk: download it first")}
	}
	o, err := ort.Open(b.Library, f.Path, ort.Options{Threads: b.Workers})
	if err != nil {
		return nil, nil, err
	}
	return o, o.Close, nil
}

// recoverBug turns a panic into an error.
func recoverBug(err *error) {
	if bug := recover(); bug != nil {
		*err = &unrunnableError{fmt.Errorf("a bug in the engine: %v", bug)}
	}
}
