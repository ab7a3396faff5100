package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Temporary folders are called prefix, a random number, suffix.
const (
	prefix   = ".mcompress-"
	suffix   = ".part"
	spool    = ".mcompress-spool-" // begins the names of temporary files that are unlinked while they are open
	lockName = "mcompress.lock"    // the file in a temporary folder that its process locks
)

// errLocked is the error of tryLock if another process holds the lock.
var errLocked = errors.New("locked")

// A Folder is a temporary folder, locked until Close.
type Folder struct {
	Path string
	lock *os.File
}

// NewFolder makes a temporary folder in parent, which is os.TempDir if empty. It first removes those of killed
// processes.
func NewFolder(parent string) (*Folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	Sweep(parent)
	for {
		path, err := os.MkdirTemp(parent, prefix+"*"+suffix)
		if err != nil {
			return nil, err
		}
		// Between MkdirTemp and the lock the folder looks like that of a killed process, and a concurrent Sweep may
		// take it.
		switch f, err := lock(path); {
		case err == nil:
			return f, nil
		case !errors.Is(err, errLocked) && !errors.Is(err, os.ErrNotExist):
			return nil, errors.Join(err, os.RemoveAll(path))
		}
		// Another process took the folder for that of a killed one before it was locked.
	}
}

// lock locks a new folder. File systems without locks are no error: nothing is removed on them. Another process may
// have removed the folder before it was locked: then the lock is that of a file without a name.
func lock(path string) (*Folder, error) {
	l, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	// A file system without locks gives another error, and is accepted: Sweep does not remove folders there
	// either.
	if err := tryLock(l); errors.Is(err, errLocked) {
		return nil, errors.Join(err, l.Close())
	}
	locked, err := l.Stat()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	// A concurrent Sweep removes while it holds the lock, so that it may have removed the folder before tryLock
	// succeeded.
	if named, err := os.Lstat(l.Name()); err != nil || !os.SameFile(locked, named) {
		return nil, errors.Join(os.ErrNotExist, l.Close())
	}
	return &Folder{path, l}, nil
}

// Close removes the folder and its content.
func (f *Folder) Close() error {
	return errors.Join(f.lock.Close(), remove(f.Path))
}

// remove removes the lock last: a folder without it is not recognized. Another process may remove the folder at the
// same time, as its lock is free.
func remove(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
		}
	}
	// The lock file remains, so that the next Sweep recognizes the folder and removes the rest.
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Sweep removes the temporary folders of killed processes: their locks are free. Spools remain where open files cannot
// be unlinked, and there those in use cannot be removed either.
func Sweep(parent string) {
	entries, _ := os.ReadDir(parent) // what cannot be read cannot be removed
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		switch {
		case e.Type().IsRegular() && strings.HasPrefix(e.Name(), spool):
			_ = os.Remove(path)
		case e.IsDir() && IsFolder(e.Name()):
			removeUnlocked(path)
		}
	}
}

// IsFolder reports whether a folder of this name is a temporary one.
func IsFolder(name string) bool {
	return strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix)
}

// removeUnlocked ignores errors: the folder may be another user's.
func removeUnlocked(path string) {
	if os.Remove(path) == nil { // empty: its process was killed before it made the lock
		return
	}
	// Within a root, so that a symbolic link in the place of the lock does not lead out of the folder.
	root, err := os.OpenRoot(path)
	if err != nil {
		return
	}
	defer root.Close()
	// A folder without lock belongs to a process that is about to make it, or is not one of ours.
	if st, err := root.Lstat(lockName); err != nil || !st.Mode().IsRegular() {
		return
	}
	l, err := root.OpenFile(lockName, os.O_RDWR, 0)
	if err != nil {
		return
	}
	err = tryLock(l)
	if err == nil {
		_ = remove(path) // locked, so that the process that just made it does not take it
	}
	if l.Close(); err == nil {
		_ = remove(path) // Windows removes only closed files
	}
}
