package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A LinkError is a symbolic link in the folder of a model that is not followed.
type LinkError struct{ Path string }

// Error names the link and a remedy.
func (e *LinkError) Error() string {
	return e.Path + ": a symbolic link, which is not followed; copy the folder with the files that its links refer to (cp -rL)"
}

// The layout of the cache of the Hugging Face Hub: files of models--OWNER--NAME/snapshots/REVISION are links to those of
// models--OWNER--NAME/blobs.
const (
	hubModels    = "models--"
	hubSnapshots = "snapshots"
	hubBlobs     = "blobs"
)

// stat describes the file of a name in the folder of a model. A link to a file that is neither in the folder nor a blob
// of the cache that has it is a *LinkError: a folder that somebody else made would name any file of the user.
func stat(dir, name string) (fs.FileInfo, error) {
	var st fs.FileInfo
	err := within(dir, name, func(root *os.Root, name string) (err error) {
		st, err = root.Stat(name)
		return err
	})
	return st, err
}

// open opens the file of a name in the folder of a model, if it is one that stat describes.
func open(dir, name string) (*os.File, error) {
	var f *os.File
	err := within(dir, name, func(root *os.Root, name string) (err error) {
		f, err = root.Open(name)
		return err
	})
	return f, err
}

// within calls use with the folder that has a file, and its name there.
func within(dir, name string, use func(*os.Root, string) error) error {
	err := useRoot(dir, name, use)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The root refuses links that lead out of it, and absolute ones. What they refer to is opened in a root, too, so
	// that it does not matter if the link has changed since.
	base, target, err := resolve(dir, name)
	switch {
	case err != nil:
		return err
	case base == "":
		return &LinkError{filepath.Join(dir, name)}
	}
	return useRoot(base, target, use)
}

func useRoot(dir, name string, use func(*os.Root, string) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return use(root, name)
}

// resolve returns the folder of a file, which is dir or the one of the blobs of its cache, and the name there, neither
// of which is a link; empty if it is in another folder.
func resolve(dir, name string) (base, target string, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", "", err
	}
	to, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err != nil {
		return "", "", err
	}
	if target, err := filepath.Rel(dir, to); err == nil && filepath.IsLocal(target) {
		return dir, target, nil
	}
	snapshots := filepath.Dir(dir)
	model := filepath.Dir(snapshots)
	if filepath.Base(snapshots) != hubSnapshots || !strings.HasPrefix(filepath.Base(model), hubModels) {
		return "", "", nil
	}
	// A repository that looks like a cache would have a link to elsewhere as its folder of blobs.
	blobs := filepath.Join(model, hubBlobs)
	if st, err := os.Lstat(blobs); err != nil || !st.IsDir() {
		return "", "", nil
	}
	if target, err := filepath.Rel(blobs, to); err == nil && filepath.IsLocal(target) {
		return blobs, target, nil
	}
	return "", "", nil
}
