package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A TargetError is the error of a path where something exists that a file cannot replace.
type TargetError struct {
	Path string
	What string
}

// Error names the path.
func (e *TargetError) Error() string {
	return fmt.Sprintf("%s: the output would replace %s; name another file", e.Path, e.What)
}

// Check returns an error unless path is free or a regular file. Symbolic links are not followed.
func Check(path string) error {
	// Not Stat: as root, a rename to a link or a device would replace it.
	st, err := os.Lstat(path)
	return checkTarget(path, st, err)
}

// checkTarget is Check with the result of Lstat.
func checkTarget(path string, st fs.FileInfo, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return withPath(path, err)
	case !st.Mode().IsRegular():
		return &TargetError{path, kind(st.Mode())}
	}
	return nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "something that is not a regular file"
}

// withPath returns err with path in place of that of a temporary file, and without the name of the system call.
func withPath(path string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
