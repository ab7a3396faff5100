package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A ForeignError is a file or folder whose content another user may have made.
type ForeignError struct{ Path, What string }

// Error names the path.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is %s: its content is not trusted; remove it, or name a folder of your own", e.Path, e.What)
}

// OpenPrivate opens a folder whose content this process trusts, as it is of an earlier run of the same user: it makes it
// for its owner alone if there is none. A symbolic link, and a folder that another user owns or may write to, is a
// *ForeignError, as a private key that others may read is one for ssh.
func OpenPrivate(path string) (*os.Root, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return OpenExisting(path)
}

// OpenExisting is OpenPrivate of a folder that exists: an error that is fs.ErrNotExist if there is none.
func OpenExisting(path string) (*os.Root, error) {
	path = filepath.Clean(path)
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, &ForeignError{path, kind(named.Mode())}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = &ForeignError{path, "replaced while it is opened"}
	}
	if err == nil {
		err = CheckPrivate(path, opened)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// CheckPrivate returns a *ForeignError if a file or folder is one that another user owns or may write to.
func CheckPrivate(path string, st fs.FileInfo) error {
	if what := shared(st); what != "" {
		return &ForeignError{path, what}
	}
	return nil
}
