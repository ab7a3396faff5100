package onnx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// OpenFS opens the model called name in fsys, as Open does for a path on disk. External data is read from the folder of
// the model in fsys. A file that does not implement io.ReaderAt is read into memory.
func OpenFS(fsys fs.FS, name string) (*File, error) {
	return OpenAt(context.Background(), fsys, name, name)
}

// OpenAt is OpenFS that returns the error of ctx soon after ctx ends. The model is known as path, which may be a URL,
// in messages and in the names of its files.
func OpenAt(ctx context.Context, fsys fs.FS, name, path string) (*File, error) {
	main, err := openIn(fsys, name, path)
	if err != nil {
		return nil, pathError(path, err)
	}
	return open(ctx, path, main, &folder{path: path, inside: name, fsys: fsys})
}

// Read opens a model of size bytes in r. It has no folder, so that external data is an error; name is for messages.
func Read(r io.ReaderAt, size int64, name string) (*File, error) {
	return open(context.Background(), name, &source{ReaderAt: r, path: name, size: size}, &folder{fsys: nowhere{}})
}

// nowhere is a file system without files.
type nowhere struct{}

func (nowhere) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// openIn opens a regular file of fsys, which is known as path.
func openIn(fsys fs.FS, name, path string) (_ *source, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if r, ok := f.(io.ReaderAt); ok {
		return &source{ReaderAt: r, Closer: f, path: path, size: st.Size()}, nil
	}
	content, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return &source{ReaderAt: bytes.NewReader(content), path: path, size: int64(len(content))}, nil
}
