package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mcompress/mcompress/internal/filestate"
)

// A ChangedError is a file of a model that another program has written or replaced while it was open: what was read of it
// may be of neither version.
type ChangedError struct{ Path string }

// Error names the file.
func (e *ChangedError) Error() string {
	return e.Path + ": was changed or replaced while it was read; run the command again when no other program writes the file"
}

// A watchedFile is an open file with its state when it was opened.
type watchedFile struct {
	file  *os.File
	state string // empty where systems have none: then size and time are compared
	info  fs.FileInfo
}

// watch notes the state of a file before its first byte is read.
func watch(f *os.File) (*watchedFile, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	state, _, _ := filestate.Of(st)
	return &watchedFile{f, state, st}, nil
}

// check returns a *ChangedError if the open file is not as it was.
func (w *watchedFile) check(path string) error {
	now, err := watch(w.file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if now.state != w.state || now.info.Size() != w.info.Size() || !now.info.ModTime().Equal(w.info.ModTime()) {
		return &ChangedError{path}
	}
	return nil
}

// CheckUnchanged returns a *ChangedError if a file of the model was written or replaced since it was opened. It is called
// when everything has been read, before results or figures are published. What cannot be watched, such as an object in
// storage, which has a tag, is not compared.
func (f *File) CheckUnchanged() error {
	var errs []error
	for _, s := range append([]*source{f.main}, f.folder.seen...) {
		if s.watched != nil {
			errs = append(errs, s.watched.check(s.path))
		}
	}
	return errors.Join(errs...)
}
