package mcompress

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/atomicfile"
)

// Files receives the files of a result, such as entries of an archive or objects of a store. Create is called once for
// each file, after the file before has been closed.
type Files interface {
	Create(name string) (io.WriteCloser, error)
}

// RunTo is Run with the model called name, its data file and reports written to files. The result is complete and
// verified before the first file is created, so that an error creates no file. Until then it is in a folder in
// os.TempDir, which needs free space for the files of the result, and for outputs of lazy tensors that other lazy
// tensors read. A result that a gate rejects is written, too, before the *RejectedError is returned.
func (m *Model) RunTo(ctx context.Context, files Files, name string, r Request) (_ *Result, err error) {
	if name == "" || name != filepath.Base(name) {
		return nil, fieldErrorf("%q is not the name of a file", name)
	}
	dir, err := atomicfile.NewFolder("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	r.Output = filepath.Join(dir.Path, name)
	res, err := m.Run(ctx, r)
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		return nil, errors.Join(err, rejected.Result.moveTo(files, dir.Path))
	}
	if err != nil || res.Output == "" {
		return res, err
	}
	return res, res.moveTo(files, dir.Path)
}

// moveTo copies the files of dir, and replaces paths by names.
func (r *Result) moveTo(files Files, dir string) error {
	var paths []string
	for _, f := range r.Report.Result.Files {
		paths = append(paths, filepath.Join(dir, f.Name))
	}
	for _, path := range append(paths, r.Reports...) {
		if err := copyTo(files, path); err != nil {
			return err
		}
	}
	r.Output = filepath.Base(r.Output)
	for i, path := range r.Reports {
		r.Reports[i] = filepath.Base(path)
	}
	return nil
}

func copyTo(files Files, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := files.Create(filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
