package onnx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/pack"
	"github.com/mcompress/mcompress/ir"
)

// A File is an open model. Its payloads are read from the files when they are
// read, so it stays open as long as its Model is used.
type File struct {
	Model *ir.Model
	Path  string

	main     *source
	folder   *folder
	metadata int64
}

// A Part is one of the files that a model consists of.
type Part struct {
	Name string // relative to the model's folder
	Size int64
	r    *source
}

// Open reads the skeleton of the model at path and checks its form. It does not
// read payloads; its cost and memory grow with the number of nodes only. Errors
// about the content are *FormatError.
func Open(path string) (*File, error) { return OpenContext(context.Background(), path) }

// OpenContext is Open that returns the error of ctx soon after ctx ends: graphs of a million nodes take seconds.
func OpenContext(ctx context.Context, path string) (*File, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	main, err := fileSource(f, path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return open(ctx, path, main, &folder{path: path})
}

// open decodes main, which may be a packed file, and closes it on an error.
func open(ctx context.Context, path string, main *source, data *folder) (_ *File, err error) {
	if pack.Packed(main) {
		model, members, err := unpacked(main)
		if err != nil {
			return nil, errors.Join(err, main.close())
		}
		main, data = model, members
	}
	file := &File{Path: path, main: main, folder: data}
	d := &decoder{cursor: cursor{src: main, ctxErr: ctx.Err}, folder: data}
	if file.Model, err = d.decode(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	file.metadata = d.metadata
	return file, nil
}

// fileSource is an open file as a source.
func fileSource(f *os.File, path string) (*source, error) {
	w, err := watch(f)
	if err != nil {
		return nil, err
	}
	return &source{ReaderAt: f, Closer: f, path: path, size: w.info.Size(), watched: w}, nil
}

// openRegular refuses folders and devices before anything is read.
func openRegular(path string) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	return f, nil
}

// pathError is err as "path: what", without the name of the system call.
func pathError(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Parts are the model file and then its external data files, in order of first use.
func (f *File) Parts() []Part {
	ps := []Part{{Name: cmp.Or(f.main.member, filepath.Base(f.Path)), Size: f.main.size, r: f.main}}
	for _, s := range f.folder.seen {
		ps = append(ps, Part{Name: s.name, Size: s.size, r: s})
	}
	return ps
}

// ReadAt reads bytes of the part as they are in the file.
func (p Part) ReadAt(b []byte, off int64) (int, error) { return p.r.ReadAt(b, off) }

// Paths are the paths of the parts, or that of the packed file.
func (f *File) Paths() []string {
	if f.Packed() {
		return []string{f.Path}
	}
	var paths []string
	for _, p := range f.Parts() {
		paths = append(paths, nextTo(f.Path, p.Name))
	}
	return paths
}

// nextTo is the path of a file next to the one at path, which may be a URL.
func nextTo(path, name string) string {
	if strings.Contains(path, "://") {
		return path[:strings.LastIndex(path, "/")+1] + name
	}
	return filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
}

// Size is the number of bytes of all parts together.
func (f *File) Size() int64 {
	n := int64(0)
	for _, p := range f.Parts() {
		n += p.Size
	}
	return n
}

// Metadata is the number of bytes of the doc_string and metadata_props of graphs, functions, nodes, attributes, values
// and tensors.
func (f *File) Metadata() int64 { return f.metadata }

// External reports whether some payload is outside of the model file.
func (f *File) External() bool { return len(f.folder.seen) > 0 }

// Close closes the model's files.
func (f *File) Close() error {
	return errors.Join(f.main.close(), f.folder.close())
}
