package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// An Access limits the permissions of new files, in addition to the umask. The zero value does not limit them.
type Access struct {
	deny    fs.FileMode   // permission bits that are not granted
	sources []fs.FileInfo // never replaced
}

// Private is access of the owner only.
func Private() Access { return Access{deny: 0o077} }

// OwnerWrites is the access that lets only the owner write, whatever the umask is: CheckPrivate accepts such files.
func (a Access) OwnerWrites() Access {
	a.deny |= 0o022
	return a
}

// Like is the access of files that are derived from sources: they are not more accessible than any of the sources.
func Like(sources ...string) (Access, error) {
	var a Access
	for _, path := range sources {
		st, err := os.Stat(path)
		if err != nil {
			return a, withPath(path, err)
		}
		// The intersection over all sources: a readable model may have private data files.
		a.deny |= ^st.Mode().Perm() & 0o077
		a.sources = append(a.sources, st)
	}
	return a, nil
}

// check returns an error if path, in the open folder dir, is a source, or is not free for a file.
func (a Access) check(dir *os.Root, path string) error {
	st, err := dir.Lstat(filepath.Base(path))
	if err := checkTarget(path, st, err); err != nil {
		return err
	}
	if err == nil && slices.ContainsFunc(a.sources, func(source fs.FileInfo) bool { return os.SameFile(st, source) }) {
		return &TargetError{path, "a file that the run reads"}
	}
	return nil
}

func (a Access) create(dir *os.Root, name string) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666&^a.deny)
	if err == nil {
		a.limitGroup(f)
	}
	return f, err
}
