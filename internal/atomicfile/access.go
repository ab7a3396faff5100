package atomicfile

import (
	"io/fs"
	"os"
	"slices"
)

// An Access limits the permissions of new files, in addition to the umask. The zero value does not limit them.
type Access struct {
	deny    fs.FileMode   // permission bits that are not granted
	sources []fs.FileInfo // never replaced
}

// Private is access of the owner only.
func Private() Access { return Access{deny: 0o077} }

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

// check returns an error if path is a source, or is not free for a file.
func (a Access) check(path string) error {
	if err := Check(path); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err == nil && slices.ContainsFunc(a.sources, func(source fs.FileInfo) bool { return os.SameFile(st, source) }) {
		return &TargetError{path, "a file that the run reads"}
	}
	return nil
}

func (a Access) create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666&^a.deny)
	if err == nil {
		a.limitGroup(f)
	}
	return f, err
}
