package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// A Set is files that are published together: they are complete before the first one has its name. Each is in a
// temporary folder next to its final place until then.
type Set struct {
	Access Access
	Sync   bool // flush files to the disk before they are renamed

	folders  map[string]*Folder // by the folder of the final place
	made     []func()           // removes folders of MakeDir
	files    []*File
	renaming func() // called before each rename; for tests, nil otherwise
}

// A File is a file under a temporary name.
type File struct {
	*os.File
	Path string // final

	sync   bool
	closed bool
	folder string // temporary
	backup string // the replaced file, while publication may fail
}

// Create creates the file that Publish calls path.
func (s *Set) Create(path string) (*File, error) {
	if err := s.Access.check(path); err != nil {
		return nil, err
	}
	folder, err := s.Folder(path)
	if err != nil {
		return nil, err
	}
	f, err := s.Access.create(filepath.Join(folder, filepath.Base(path)))
	if err != nil {
		return nil, withPath(path, err)
	}
	return s.add(f, path, folder), nil
}

// add adds f, a file in the temporary folder.
func (s *Set) add(f *os.File, path, folder string) *File {
	file := &File{File: f, Path: path, sync: s.Sync, folder: folder}
	s.files = append(s.files, file)
	return file
}

// Folder is the temporary folder of the file that Publish calls path. Files there have their final base names.
func (s *Set) Folder(path string) (string, error) {
	dir := filepath.Dir(path)
	if f := s.folders[dir]; f != nil {
		return f.Path, nil
	}
	f, err := NewFolder(dir)
	if err != nil {
		return "", withPath(path, err)
	}
	if s.folders == nil {
		s.folders = map[string]*Folder{}
	}
	s.folders[dir] = f
	return f.Path, nil
}

// MakeDir makes a folder for files of the set, and missing parents. Close removes those that are still empty.
func (s *Set) MakeDir(path string) error {
	undo, err := MakeDir(path)
	s.made = append(s.made, undo)
	return err
}

// WriteFile creates a file with the given content.
func (s *Set) WriteFile(path string, write func(io.Writer) error) error {
	f, err := s.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Fail(write(f)), f.Close())
}

// Fail returns err with the final path in place of the temporary one; nil for nil.
func (f *File) Fail(err error) error {
	if err == nil {
		return nil
	}
	return withPath(f.Path, err)
}

// Close flushes and closes the file. A second call does nothing.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	var err error
	if f.sync {
		err = f.Sync()
	}
	return f.Fail(errors.Join(err, f.File.Close()))
}

// Remove removes a file that is not to be published.
func (s *Set) Remove(path string) error {
	i := s.index(path)
	if i < 0 {
		return nil
	}
	f := s.files[i]
	s.files = slices.Delete(s.files, i, i+1)
	return errors.Join(f.Close(), f.Fail(os.Remove(f.Name())))
}

// Publish renames all files in the order of their creation, but last at the end. After an error none is published, and
// those that would have been replaced are unchanged.
func (s *Set) Publish(last string) error {
	if i := s.index(last); i >= 0 {
		f := s.files[i]
		s.files = append(slices.Delete(s.files, i, i+1), f)
	}
	for _, f := range s.files {
		if err := errors.Join(f.Close(), s.Access.check(f.Path)); err != nil {
			return err
		}
	}
	// All files are closed and checked above, before the first is renamed: from here on only a rename can fail, and
	// those before it are undone.
	for i, f := range s.files {
		if s.renaming != nil {
			s.renaming()
		}
		if err := f.publish(i); err != nil {
			// The last renamed is undone first, so that the model never has its name without its data files.
			for _, f := range slices.Backward(s.files[:i]) {
				err = errors.Join(err, f.unpublish())
			}
			return err
		}
	}
	s.files = nil
	if s.Sync {
		// A rename is durable with its folder only; the content was flushed before.
		for dir := range s.folders {
			syncFolder(dir)
		}
	}
	return nil
}

func (s *Set) index(path string) int {
	return slices.IndexFunc(s.files, func(f *File) bool { return f.Path == path })
}

// publish renames the file. A file that it replaces keeps a name in the temporary folder, if the file system has hard
// links.
func (f *File) publish(i int) error {
	backup := filepath.Join(f.folder, "mcompress.replaced."+strconv.Itoa(i))
	// A link and not a rename: the old file keeps its name until the new one replaces it.
	if os.Link(f.Path, backup) == nil {
		f.backup = backup
	}
	return f.Fail(os.Rename(f.Name(), f.Path))
}

func (f *File) unpublish() error {
	if f.backup != "" {
		return f.Fail(os.Rename(f.backup, f.Path))
	}
	return f.Fail(os.Remove(f.Path))
}

// Close removes the files that are not published, the temporary folders, and those of MakeDir that are empty.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	for _, folder := range s.folders {
		errs = append(errs, folder.Close())
	}
	for _, undo := range slices.Backward(s.made) {
		undo()
	}
	s.files, s.folders, s.made = nil, nil, nil
	return errors.Join(errs...)
}

// syncFolder makes renames durable. Systems that cannot sync a folder do not need it.
func syncFolder(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
