package atomicfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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

	parent *os.Root // the folder that it is in
	name   string   // in parent
	root   *os.Root // the folder itself, also if another process gives its name to something else
	lock   *os.File
}

// NewFolder makes a temporary folder in parent, which is os.TempDir if empty. It first removes those of killed
// processes.
func NewFolder(parent string) (*Folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil, err
	}
	f, err := newFolder(root)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// newFolder is NewFolder in an open folder, which Close of the new one closes.
func newFolder(parent *os.Root) (*Folder, error) {
	sweep(parent)
	for {
		name := prefix + strconv.FormatUint(rand.Uint64(), 36) + suffix
		err := parent.Mkdir(name, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Between Mkdir and the lock the folder looks like that of a killed process, and a concurrent Sweep may
		// take it.
		switch f, err := lock(parent, name); {
		case err == nil:
			return f, nil
		case !errors.Is(err, errLocked) && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, parent.RemoveAll(name))
		}
		// Another process took the folder for that of a killed one before it was locked.
	}
}

// lock locks a new folder. File systems without locks are no error: nothing is removed on them. Another process may
// have removed the folder before it was locked: then the lock is that of a file without a name.
func lock(parent *os.Root, name string) (_ *Folder, err error) {
	root, err := openFolder(parent, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	l, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	// A file system without locks gives another error, and is accepted: Sweep does not remove folders there
	// either.
	if err := tryLock(l); errors.Is(err, errLocked) {
		return nil, errors.Join(err, l.Close())
	}
	// A concurrent Sweep removes while it holds the lock, so that it may have removed the folder before tryLock
	// succeeded.
	if !isNamed(root, lockName, l) {
		return nil, errors.Join(fs.ErrNotExist, l.Close())
	}
	return &Folder{filepath.Join(parent.Name(), name), parent, name, root, l}, nil
}

// openFolder opens a folder in another one. It is not found if the name is that of a link, also of one that has just
// taken its place.
func openFolder(parent *os.Root, name string) (*os.Root, error) {
	named, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && (!named.IsDir() || !os.SameFile(named, opened)) {
		err = &fs.PathError{Op: "open", Path: filepath.Join(parent.Name(), name), Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// isNamed reports whether the name in a folder is still that of an open file, and not of a link to it.
func isNamed(dir *os.Root, name string, f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := dir.Lstat(name)
	return err == nil && os.SameFile(opened, named)
}

// Close removes the folder and its content.
func (f *Folder) Close() error {
	err := errors.Join(f.lock.Close(), removeContent(f.root), f.root.Close())
	if err == nil {
		err = removeEmpty(f.parent, f.name)
	}
	return errors.Join(err, f.parent.Close())
}

// removeContent removes the content of a temporary folder through the open folder, so that nothing is removed elsewhere
// if its name becomes that of another one. The lock is the last, as a folder without it is not recognized. Another
// process may remove the folder at the same time, as its lock is free.
func removeContent(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, root.RemoveAll(e.Name()))
		}
	}
	// The lock file remains, so that the next Sweep recognizes the folder and removes the rest.
	if err != nil {
		return err
	}
	return removeEmpty(root, lockName)
}

// removeEmpty removes a file or an empty folder, which may be gone.
func removeEmpty(parent *os.Root, name string) error {
	if err := parent.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes the temporary folders of killed processes: their locks are free. Spools remain where open files cannot
// be unlinked, and there those in use cannot be removed either.
func Sweep(parent string) {
	root, err := os.OpenRoot(parent)
	if err != nil { // what cannot be read cannot be removed
		return
	}
	defer root.Close()
	sweep(root)
}

func sweep(parent *os.Root) {
	entries, _ := fs.ReadDir(parent.FS(), ".")
	for _, e := range entries {
		switch {
		case e.Type().IsRegular() && strings.HasPrefix(e.Name(), spool):
			_ = parent.Remove(e.Name())
		case e.IsDir() && IsFolder(e.Name()):
			removeUnlocked(parent, e.Name())
		}
	}
}

// IsFolder reports whether a folder of this name is a temporary one.
func IsFolder(name string) bool {
	return strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix)
}

// removeUnlocked ignores errors: the folder may be another user's.
func removeUnlocked(parent *os.Root, name string) {
	if parent.Remove(name) == nil { // empty: its process was killed before it made the lock
		return
	}
	root, err := openFolder(parent, name)
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
		_ = removeContent(root) // locked, so that the process that just made it does not take it
	}
	if l.Close(); err == nil {
		_ = removeContent(root) // Windows removes only closed files
		_ = parent.Remove(name)
	}
}
