package mcompress

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A Model is an open model. Its weights are read when they are used, so that it must be closed after the last use. The
// zero value is none: its methods return errors.
type Model struct {
	file   *onnx.File
	reopen func() (*onnx.File, error) // nil for a file on disk
}

// Open opens the model at a path or URL. It reads the graph, not the weights.
func Open(path string) (*Model, error) { return OpenContext(context.Background(), path) }

// OpenContext is Open, which ends with ctx.
func OpenContext(ctx context.Context, path string) (*Model, error) {
	f, err := remote.OpenModel(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Model{file: f}, nil
}

// OpenFS opens the model called name in fsys, with external data in the folder of the model. Files that do not
// implement io.ReaderAt, such as those of zip archives, are read into memory.
func OpenFS(fsys fs.FS, name string) (*Model, error) {
	return openWith(func() (*onnx.File, error) { return onnx.OpenFS(fsys, name) })
}

// Read opens a model of size bytes, without external data, in r. name is the name of the model in messages and reports.
func Read(r io.ReaderAt, size int64, name string) (*Model, error) {
	return openWith(func() (*onnx.File, error) { return onnx.Read(r, size, name) })
}

func openWith(open func() (*onnx.File, error)) (*Model, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	return &Model{file: f, reopen: open}, nil
}

// errNoModel is a Model that Open, OpenFS or Read did not make.
var errNoModel = errors.New("the model is not open")

// check is an error for the zero value.
func (m *Model) check() error {
	if m == nil || m.file == nil {
		return errNoModel
	}
	return nil
}

// IR is the graph of the model. Compressing does not change it. It is nil for the zero value.
func (m *Model) IR() *ir.Model {
	if m.check() != nil {
		return nil
	}
	return m.file.Model
}

// Close closes the files of the model.
func (m *Model) Close() error {
	if m.check() != nil {
		return nil
	}
	return m.file.Close()
}

// Compress is the function Compress for an open model.
func (m *Model) Compress(ctx context.Context, out string, args ...Argument) (*Result, error) {
	r, err := requestOf(args)
	if err != nil {
		return nil, err
	}
	r.Output = out
	return m.Run(ctx, r)
}

// Run carries out a request, which has no Models, for an open model. A model that is not a file on disk has no journal:
// an interrupted run begins anew.
func (m *Model) Run(ctx context.Context, r Request) (*Result, error) {
	switch err := m.check(); {
	case err != nil:
		return nil, err
	case len(r.Models) > 0:
		return nil, fieldErrorf("{Models} is the one that is open")
	case r.Output == "" && !r.DryRun:
		return nil, fieldErrorf("{Output} is empty")
	case r.Search != nil || r.Variants != nil || r.List != List{}:
		return nil, fieldErrorf("{Search}, {Variants} and {List} require a model at a path")
	}
	r.Models, r.source = []string{m.file.Path}, m.reopen
	return r.Run(ctx)
}
