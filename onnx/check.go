package onnx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// check shows o.Check the model as it was written, its data under the name that it has for them.
func (o SaveOptions) check(ctx context.Context, files []*output) (err error) {
	if o.Check == nil {
		return nil
	}
	var sources []*source
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.close())
		}
	}()
	for _, out := range files {
		r, err := os.Open(out.tmp.Name())
		if err != nil {
			return out.fail(err)
		}
		sources = append(sources, &source{ReaderAt: r, Closer: r, path: out.path, size: out.size})
	}
	f := &File{Path: files[0].tmp.Name(), main: sources[0], folder: &folder{path: filepath.Dir(files[0].path), open: map[string]*source{}}}
	for _, s := range sources[1:] {
		f.folder.open[filepath.Base(s.path)] = s
		f.folder.seen = append(f.folder.seen, s)
	}
	d := &decoder{cursor: cursor{src: f.main}, folder: f.folder}
	if f.Model, err = d.decode(); err != nil {
		return fmt.Errorf("the output cannot be read back: %w", err)
	}
	return o.Check(ctx, f)
}

// Link makes the files of a model that SaveOptions.Check sees appear in dir, under names by
// which the model finds its data, and returns the path of the model there.
func (f *File) Link(dir string) (path string, err error) {
	for _, p := range f.Parts() {
		if err := os.Link(p.r.ReaderAt.(*os.File).Name(), filepath.Join(dir, p.Name)); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, filepath.Base(f.Path)), nil
}
