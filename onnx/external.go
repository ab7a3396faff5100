package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/mcompress/mcompress/ir"
)

// external is the location of a payload outside of the model file, by its TensorProto.
type external struct {
	location       string
	offset, length int64 // length is -1 where it is not stated
}

// set reads one entry of external_data. Other keys than these three are kept.
func (e *external) set(key, value string) error {
	var err error
	switch key {
	case "location":
		e.location = value
	case "offset":
		e.offset, err = strconv.ParseInt(value, 10, 64)
	case "length":
		e.length, err = strconv.ParseInt(value, 10, 64)
	}
	if err != nil || e.offset < 0 || key == "length" && e.length < 0 {
		return fmt.Errorf("external data %s %q is no size", key, value)
	}
	return nil
}

// A folder opens the data files next to a model, each once, and nothing outside of
// the model's folder: os.Root refuses ../, absolute paths and symlinks that leave it.
type folder struct {
	path   string   // of the model
	inside string   // name of the model in fsys
	fsys   fs.FS    // nil for a folder on disk
	root   *os.Root // of a folder on disk
	open   map[string]*source
	seen   []*source // in order of first use
}

func (d *folder) file(location string) (*source, error) {
	if s := d.open[location]; s != nil {
		return s, nil
	}
	// os.Root would refuse it too, but a file system of the caller need not.
	if location == "" || !filepath.IsLocal(filepath.FromSlash(location)) {
		return nil, fmt.Errorf("external data location %q is not a path inside the model's folder", location)
	}
	s, err := d.source(location)
	if err != nil {
		return nil, err
	}
	s.name = path.Clean(location)
	if d.open == nil {
		d.open = map[string]*source{}
	}
	d.open[location] = s
	d.seen = append(d.seen, s)
	return s, nil
}

func (d *folder) source(location string) (*source, error) {
	if d.fsys != nil {
		s, err := openIn(d.fsys, path.Join(path.Dir(d.inside), location), nextTo(d.path, location))
		if err != nil {
			return nil, unopened(location, err)
		}
		return s, nil
	}
	if d.root == nil {
		root, err := os.OpenRoot(filepath.Dir(d.path))
		if err != nil {
			return nil, err
		}
		d.root = root
	}
	// Stat first: opening a pipe or a device could block.
	st, err := d.root.Stat(filepath.FromSlash(location))
	if err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("external data %q is not a regular file", location)
	}
	if err != nil {
		return nil, unopened(location, err)
	}
	f, err := d.root.Open(filepath.FromSlash(location))
	if err != nil {
		return nil, unopened(location, err)
	}
	s, err := fileSource(f, nextTo(d.path, location))
	if err != nil {
		return nil, errors.Join(unopened(location, err), f.Close())
	}
	return s, nil
}

func unopened(location string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	msg := fmt.Sprintf("external data %q: %v", location, err)
	if errors.Is(err, fs.ErrNotExist) {
		msg = fmt.Sprintf("external data %q is missing; put the file next to the model", location)
	}
	return &locationError{msg, err}
}

// span checks e against the file and the tensor it is for.
func (d *folder) span(e external, s ir.Spec) (ir.Span, error) {
	if s.DType == ir.String {
		return ir.Span{}, errors.New("strings cannot be external data")
	}
	n := s.Bytes()
	// Before the file is opened, so that the error is about the model.
	if e.length >= 0 && e.length != n {
		return ir.Span{}, fmt.Errorf("external data length %d, but %s takes %d bytes", e.length, s, n)
	}
	f, err := d.file(e.location)
	if err != nil {
		return ir.Span{}, err
	}
	if e.offset > f.size || n > f.size-e.offset {
		return ir.Span{}, fmt.Errorf(
			"external data %q has %d bytes, but the tensor refers to bytes %d to %d",
			e.location,
			f.size,
			e.offset,
			e.offset+n,
		)
	}
	return ir.Span{R: f, Off: e.offset}, nil
}

func (d *folder) close() error {
	var errs []error
	for _, s := range d.seen {
		errs = append(errs, s.close())
	}
	if d.root != nil {
		errs = append(errs, d.root.Close())
	}
	return errors.Join(errs...)
}
