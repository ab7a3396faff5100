package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// resumed begins the names of the files of Resume. No sweep removes them.
const resumed = ".mcompress-resume-"

// Resume is Create of a file whose content survives an interruption: Close of the set does not remove it, and the next
// call with the same key opens it with the content that it had. The key identifies the final content, such as by its
// digest, and is part of a file name in the folder of path. The file is locked: it is an error if another process has
// it open. Remove removes it.
func (s *Set) Resume(path, key string) (_ *File, err error) {
	if err := s.Access.check(path); err != nil {
		return nil, err
	}
	folder, err := s.Folder(path)
	if err != nil {
		return nil, err
	}
	partial := filepath.Join(filepath.Dir(path), resumed+key)
	// The name is predictable: a symbolic link in its place would lead the download elsewhere.
	if err := Check(partial); err != nil {
		return nil, err
	}
	// Next to the final place, so that publishing is a rename on one file system.
	f, err := OpenLocked(partial, 0o666&^s.Access.deny)
	if err != nil {
		return nil, withPath(path, err)
	}
	return s.add(f, path, folder), nil
}

// CreateKept is Create of a file that is also at another path, kept: Close of the set does not remove it there, and the
// next call opens it with the content that it had. It is like Create on file systems without hard links. The caller
// locks kept by a file of OpenLocked.
func (s *Set) CreateKept(path, kept string) (*File, error) {
	if err := s.Access.check(path); err != nil {
		return nil, err
	}
	folder, err := s.Folder(path)
	if err != nil {
		return nil, err
	}
	named := filepath.Join(folder, filepath.Base(path))
	// The same file under two names: what is written into the temporary folder also survives at kept, and
	// publishing renames the former only.
	if err := linked(kept, named, 0o666&^s.Access.deny); err != nil {
		return s.Create(path)
	}
	f, err := os.OpenFile(named, os.O_RDWR, 0)
	if err != nil {
		return nil, withPath(path, err)
	}
	s.Access.limitGroup(f)
	return s.add(f, path, folder), nil
}

// Keep renames a file that is kept, for CreateKept under another name. Names of it in sets stay.
func Keep(from, to string) error { return os.Rename(from, to) }

// linked gives the file at path, which it creates if there is none, another name.
func linked(path, name string, perm os.FileMode) error {
	if err := Check(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Link(path, name))
}

// OpenLocked opens a file for reading and writing, or creates it with these permissions. It is locked until it is
// closed: it is an error if another process has it open in this way.
func OpenLocked(path string, perm os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	if err := lockPartial(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A BusyError is a file that another process writes.
type BusyError struct{ what string }

// Error states what the other process does.
func (e *BusyError) Error() string { return e.what }

// lockPartial locks f. Another process may have published it before: then f has no longer the name.
func lockPartial(f *os.File) error {
	if err := tryLock(f); errors.Is(err, errLocked) {
		return &BusyError{"another process writes the same file"}
	}
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	// Between open and lock another process may have renamed the file: the lock is then on what it published.
	if named, err := os.Lstat(f.Name()); err != nil || !os.SameFile(opened, named) {
		return &BusyError{"another process has just written the same file"}
	}
	return nil
}
