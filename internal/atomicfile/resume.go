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
// it open. Remove removes it. What another user may have made, or may change later, is not resumed: it is replaced.
func (s *Set) Resume(path, key string) (_ *File, err error) {
	p, err := s.free(path)
	if err != nil {
		return nil, err
	}
	if err := p.makeTemporary(); err != nil {
		return nil, withPath(path, err)
	}
	// Next to the final place, so that publishing is a rename on one file system.
	name := resumed + key
	perm := 0o666 &^ s.Access.deny
	f, err := OpenLocked(p.root, name, perm)
	// The name is predictable: in a folder that others can write to, somebody may have made the file before.
	var foreign *ForeignError
	if errors.As(err, &foreign) {
		if err = p.root.Remove(name); err == nil {
			f, err = OpenLocked(p.root, name, perm)
		}
	}
	if err != nil {
		return nil, withPath(path, err)
	}
	return s.add(f, path, p, name), nil
}

// CreateKept is Create of a file that is also at another path, kept: Close of the set does not remove it there, and the
// next call opens it with the content that it had. It is like Create on file systems without hard links. The caller
// locks kept by a file of OpenLocked.
func (s *Set) CreateKept(path, kept string) (*File, error) {
	p, err := s.free(path)
	if err != nil {
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
	return s.add(f, path, p, p.temporaryName(filepath.Base(path))), nil
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

// OpenLocked opens a file of a folder for reading and writing, or creates it with these permissions. It is locked until
// it is closed: it is an error if another process has it open in this way, a *ForeignError if another user may have made
// it.
func OpenLocked(dir *os.Root, name string, perm os.FileMode) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	// Before it is opened: opening a pipe waits for its writer.
	if st, err := dir.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return nil, &ForeignError{path, kind(st.Mode())}
	}
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !isOwn(st) {
		err = &ForeignError{path, "of another user, or has another name, too"}
	}
	if err == nil {
		err = lockPartial(dir, name, f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A BusyError is a file that another process writes.
type BusyError struct{ what string }

// Error states what the other process does.
func (e *BusyError) Error() string { return e.what }

// lockPartial locks f, a file of a folder. Another process may have published it before: then f has no longer the name.
func lockPartial(dir *os.Root, name string, f *os.File) error {
	if err := tryLock(f); errors.Is(err, errLocked) {
		return &BusyError{"another process writes the same file"}
	}
	// Between open and lock another process may have renamed the file: the lock is then on what it published.
	if !isNamed(dir, name, f) {
		return &BusyError{"another process has just written the same file"}
	}
	return nil
}
