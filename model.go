package mcompress

import (
	"context"
	"io"
	"io/fs"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// A Model is an open model. Its weights are read when they are used, so that it must be closed after the last use.
type Model struct {
	file   *onnx.File
	reopen func() (*onnx.File, error) // nil for a file on disk
}

// Open opens the model at path. It reads the graph, not the weights.
func Open(path string) (*Model, error) {
	f, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	return &Model{file: f}, nil
}

// OpenFS opens the model called name in fsys, with external data in the folder of the model. Files that do not implement io.ReaderAt,
// such as those of zip archives, are read into memory.
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

// IR is the graph of the model. Compressing does not change it.
func (m *Model) IR() *ir.Model { return m.file.Model }

// Close closes the files of the model.
func (m *Model) Close() error { return m.file.Close() }

// Compress is the function Compress for an open model.
func (m *Model) Compress(ctx context.Context, out string, steps ...Step) (*Result, error) {
	s, methods, err := split(steps)
	if err != nil {
		return nil, err
	}
	return m.compress(ctx, out, s, methods)
}

func (m *Model) compress(ctx context.Context, out string, s *settings, methods []pass.Options) (*Result, error) {
	return compress(ctx, job.Options{Input: m.file.Path, Source: m.reopen, Output: out}, s, methods)
}
