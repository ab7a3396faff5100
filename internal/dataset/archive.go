package dataset

import (
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/remote"
)

// openNPZ opens a file of numpy.savez or savez_compressed. The header of an array is read on first use.
// One of scipy.sparse.save_npz has the rows of a matrix.
func openNPZ(path string, inputs []Input) (*samples, error) {
	f, size, err := openAt(path)
	if err != nil {
		return nil, err
	}
	path = remote.Shown(path)
	s := &samples{path: path, closers: []io.Closer{f}}
	z, err := zip.NewReader(f, size)
	if err != nil {
		return s, fmt.Errorf("%s: not a valid .npz file: %w", path, err)
	}
	entries := map[string]*zip.File{}
	for _, e := range z.File {
		name, ok := strings.CutSuffix(e.Name, ".npy")
		if !ok {
			continue
		}
		if entries[name] != nil {
			return s, fmt.Errorf("%s: array %q is a duplicate", path, name)
		}
		entries[name] = e
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	s.open = func(name string) (column, error) {
		e := entries[name]
		if e == nil {
			return nil, nil
		}
		c, err := s.entry(f, e, name)
		if err != nil {
			return nil, err
		}
		return asColumn(parseNPY(c, name))
	}
	if isSparse(s.names, inputs) {
		return s, s.openSparse(func(name string) (*array, error) {
			if entries[name] == nil {
				return nil, fmt.Errorf("array %q is missing", name)
			}
			c, err := s.entry(f, entries[name], name)
			if err != nil {
				return nil, err
			}
			return parseHeader(c, name)
		})
	}
	return s, nil
}

// entry opens an entry of the zip file f. An uncompressed one is read in place.
func (s *samples) entry(f io.ReaderAt, e *zip.File, name string) (*content, error) {
	wrong := func(err error) error { return fmt.Errorf("%s: array %q: %w", s.path, name, err) }
	if e.Flags&1 != 0 {
		return nil, wrong(fmt.Errorf("encrypted zip entries are not supported; save the array without a password"))
	}
	off, err := e.DataOffset()
	if err != nil {
		return nil, wrong(err)
	}
	c := &content{name: s.path, size: int64(e.CompressedSize64), read: &s.read}
	switch e.Method {
	case zip.Store:
		c.ReaderAt = io.NewSectionReader(f, off, c.size)
	case zip.Deflate:
		c.unpack(e.Open)
		s.closers = append(s.closers, c.closer)
	default:
		return nil, wrong(fmt.Errorf("unsupported zip method %d; save it with numpy.savez_compressed", e.Method))
	}
	return c, nil
}

// openArrays opens a folder of .npy files: the array NAME is NAME.npy.
func openArrays(path string) (*samples, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	s := &samples{path: path, closers: []io.Closer{root}}
	files, err := fs.Glob(root.FS(), "*.npy")
	if err != nil {
		return s, fileError(path, err)
	}
	for _, f := range files {
		s.names = append(s.names, strings.TrimSuffix(f, ".npy"))
	}
	s.open = func(name string) (column, error) {
		// A name in the model may be any path; root rejects paths outside the folder.
		if st, err := root.Stat(filepath.FromSlash(name) + ".npy"); err != nil || !st.Mode().IsRegular() {
			return nil, nil
		}
		c, err := s.file(filepath.Join(path, filepath.FromSlash(name)+".npy"))
		if err != nil {
			return nil, err
		}
		return asColumn(parseNPY(c, ""))
	}
	return s, nil
}

// asColumn returns a nil column for a nil array.
func asColumn(a *array, err error) (column, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}
