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
)

// openNPZ opens what numpy.savez or savez_compressed wrote. Headers of arrays are read
// when they are asked for.
func openNPZ(path string) (*samples, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	s := &samples{path: path, closers: []io.Closer{f}}
	z, err := zip.NewReader(f, st.Size())
	if err != nil {
		return s, fmt.Errorf("%s: this is no .npz file: %w", path, err)
	}
	entries := map[string]*zip.File{}
	for _, e := range z.File {
		name, ok := strings.CutSuffix(e.Name, ".npy")
		if !ok {
			continue
		}
		if entries[name] != nil {
			return s, fmt.Errorf("%s: array %q appears twice", path, name)
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
		return s.entry(f, e, name)
	}
	return s, nil
}

// entry opens an array in the zip file f. A stored one is read in place.
func (s *samples) entry(f io.ReaderAt, e *zip.File, name string) (column, error) {
	wrong := func(err error) error { return fmt.Errorf("%s: array %q: %w", s.path, name, err) }
	if e.Flags&1 != 0 {
		return nil, wrong(fmt.Errorf("it is encrypted; save it without a password"))
	}
	off, err := e.DataOffset()
	if err != nil {
		return nil, wrong(err)
	}
	c := &content{name: s.path, size: int64(e.CompressedSize64)}
	switch e.Method {
	case zip.Store:
		c.ReaderAt = io.NewSectionReader(f, off, c.size)
	case zip.Deflate:
		c.unpack(e.Open)
		s.closers = append(s.closers, c.closer)
	default:
		return nil, wrong(fmt.Errorf("zip method %d cannot be read; save it with numpy.savez_compressed", e.Method))
	}
	return asColumn(parseNPY(c, name))
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
		// A name of the model may point anywhere; root refuses what lies outside.
		if st, err := root.Stat(filepath.FromSlash(name) + ".npy"); err != nil || !st.Mode().IsRegular() {
			return nil, nil
		}
		c, err := openFile(filepath.Join(path, filepath.FromSlash(name)+".npy"))
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, c)
		return asColumn(parseNPY(c, ""))
	}
	return s, nil
}

// asColumn keeps a nil array from becoming a column that is not nil.
func asColumn(a *array, err error) (column, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}
