package onnx

import (
	"errors"
	"os"
	"path/filepath"
)

// An output is a file under a temporary name beside its final one.
type output struct {
	path string
	size int64
	tmp  *os.File
	done bool // renamed
	shut bool // closed
}

func create(path string, size int64) (*output, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return nil, pathError(path, err)
	}
	o := &output{path: path, size: size, tmp: tmp}
	// Says at once when the file system has a smaller limit on files; the blocks
	// themselves are taken as they are written.
	if err := errors.Join(tmp.Chmod(0o644), tmp.Truncate(size)); err != nil {
		return nil, errors.Join(o.fail(err), o.discard())
	}
	return o, nil
}

// fail names the final file, not the temporary one.
func (o *output) fail(err error) error { return pathError(o.path, err) }

func (o *output) writeAt(b []byte, off int64) error {
	if _, err := o.tmp.WriteAt(b, off); err != nil {
		return o.fail(err)
	}
	return nil
}

func (o *output) close(sync bool) error {
	if sync {
		if err := o.tmp.Sync(); err != nil {
			return o.fail(err)
		}
	}
	o.shut = true
	if err := o.tmp.Close(); err != nil {
		return o.fail(err)
	}
	return nil
}

func (o *output) rename() error {
	if err := os.Rename(o.tmp.Name(), o.path); err != nil {
		return o.fail(err)
	}
	o.done = true
	return nil
}

// discard removes the temporary file unless it got its name.
func (o *output) discard() error {
	if o.done {
		return nil
	}
	var err error
	if !o.shut {
		err = o.tmp.Close()
	}
	return errors.Join(err, os.Remove(o.tmp.Name()))
}
