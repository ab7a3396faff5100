package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// A Device runs the files of one stage, or of all segments of one rank. It runs one file at a time.
type Device interface {
	Run(ctx context.Context, file string, in map[string]*ir.Array) (*Reply, error)
	Close() error
}

// Settings are the files of a device and the limits of their runs.
type Settings struct {
	Folder  string
	Files   []string
	Workers int
	Limits  memory.Limits
	Exact   bool // without fusions: bit-identical to the whole model that is run so
}

// A Reply is the result of a run of a file on a device.
type Reply struct {
	Outputs map[string]*ir.Array
	Seconds float64
	Peak    int64 // resident memory of the device's process so far, in bytes
	Bytes   int64 // that were exchanged with its process
	Error   string
}

// local is a device in this process.
type local struct {
	sessions map[string]engine.Session
	files    []*onnx.File
}

// openLocal opens the files of a device in this process.
func openLocal(ctx context.Context, s Settings) (_ *local, err error) {
	l := &local{sessions: map[string]engine.Session{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, name := range s.Files {
		path := filepath.Join(s.Folder, name)
		f, err := onnx.OpenContext(ctx, path)
		if err != nil {
			return nil, err
		}
		l.files = append(l.files, f)
		e, err := engine.Open(ctx, f.Model, engine.Options{Workers: s.Workers, Limits: s.Limits, NoFusion: s.Exact})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		l.sessions[name] = e
	}
	return l, nil
}

// Run runs one of the files.
func (l *local) Run(ctx context.Context, file string, in map[string]*ir.Array) (*Reply, error) {
	start := time.Now()
	out, err := l.sessions[file].Run(ctx, in, nil)
	if err != nil {
		return nil, err
	}
	return &Reply{Outputs: out, Seconds: time.Since(start).Seconds(), Peak: report.Observe(0)().PeakResident}, nil
}

// Close releases the memory of the device.
func (l *local) Close() error {
	var errs []error
	for _, s := range l.sessions {
		errs = append(errs, s.Close())
	}
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
