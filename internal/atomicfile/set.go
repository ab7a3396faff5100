package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Set is files that are published together: they are complete before the first one has its name. Each is in a
// temporary folder next to its final place until then. The folder of a file is opened once, so that all files come to
// be in the same one whatever its name becomes.
type Set struct {
	Access Access
	Sync   bool // flush files to the disk before they are renamed

	// Base is the folder of files whose names are from elsewhere: none of the folders between it and a file is a
	// symbolic link, which could lead out of it. Files that are not below it are errors. Empty for files whose folders
	// the user names.
	Base string

	places   map[string]*place // by the folder of the final place
	made     []func()          // removes folders of MakeDir
	files    []*File
	renaming func() // called before each rename; for tests, nil otherwise
}

// A place is an open folder of files of a set.
type place struct {
	root      *os.Root
	temporary *Folder // in root; nil before the first file
}

// A File is a file under a temporary name.
type File struct {
	*os.File
	Path string // final

	sync   bool
	closed bool
	place  *place // the folder of Path
	name   string // temporary, in place
	backup string // in place, of the replaced file while publication may fail
}

// Create creates the file that Publish calls path.
func (s *Set) Create(path string) (*File, error) {
	p, err := s.free(path)
	if err != nil {
		return nil, err
	}
	if err := p.makeTemporary(); err != nil {
		return nil, withPath(path, err)
	}
	name := p.temporaryName(filepath.Base(path))
	f, err := s.Access.create(p.root, name)
	if err != nil {
		return nil, withPath(path, err)
	}
	return s.add(f, path, p, name), nil
}

// add adds f, which has a temporary name in a place.
func (s *Set) add(f *os.File, path string, p *place, name string) *File {
	file := &File{File: f, Path: path, sync: s.Sync, place: p, name: name}
	s.files = append(s.files, file)
	return file
}

// free returns the place of a path, which is free for a file of the set.
func (s *Set) free(path string) (*place, error) {
	p, err := s.place(filepath.Dir(path))
	if err != nil {
		return nil, withPath(path, err)
	}
	return p, s.Access.check(p.root, path)
}

// place opens a folder.
func (s *Set) place(dir string) (*place, error) {
	if p := s.places[dir]; p != nil {
		return p, nil
	}
	root, err := s.open(dir)
	if err != nil {
		return nil, err
	}
	if s.places == nil {
		s.places = map[string]*place{}
	}
	s.places[dir] = &place{root: root}
	return s.places[dir], nil
}

// open opens a folder, through each folder between it and Base.
func (s *Set) open(dir string) (*os.Root, error) {
	if s.Base == "" {
		return os.OpenRoot(dir)
	}
	below, err := s.below(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Base)
	for _, name := range below {
		if err != nil {
			return nil, err
		}
		parent := root
		root, err = openFolder(parent, name)
		err = errors.Join(err, parent.Close())
	}
	return root, err
}

// below are the names of the folders between Base and dir, and that of dir; none for Base.
func (s *Set) below(dir string) ([]string, error) {
	rel, err := filepath.Rel(s.Base, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: errors.New("not in the folder of the output")}
	}
	if rel == "." {
		return nil, nil
	}
	return strings.Split(rel, string(filepath.Separator)), nil
}

// makeTemporary makes the temporary folder of a place unless it has one.
func (p *place) makeTemporary() error {
	if p.temporary != nil {
		return nil
	}
	parent, err := p.root.OpenRoot(".")
	if err != nil {
		return err
	}
	if p.temporary, err = newFolder(parent); err != nil {
		return errors.Join(err, parent.Close())
	}
	return nil
}

// temporaryName is the name of a file in the temporary folder of a place.
func (p *place) temporaryName(base string) string { return filepath.Join(p.temporary.name, base) }

// close removes the temporary folder.
func (p *place) close() error {
	var err error
	if p.temporary != nil {
		err = p.temporary.Close()
	}
	return errors.Join(err, p.root.Close())
}

// Folder is the temporary folder of the file that Publish calls path. Files there have their final base names.
func (s *Set) Folder(path string) (string, error) {
	p, err := s.place(filepath.Dir(path))
	if err == nil {
		err = p.makeTemporary()
	}
	if err != nil {
		return "", withPath(path, err)
	}
	return p.temporary.Path, nil
}

// MakeDir makes a folder for files of the set, and missing parents. Close removes those that are still empty.
func (s *Set) MakeDir(path string) error {
	undo, err := s.makeDir(path)
	s.made = append(s.made, undo)
	return err
}

func (s *Set) makeDir(path string) (undo func(), err error) {
	if s.Base == "" {
		return MakeDir(path)
	}
	below, err := s.below(path)
	if err != nil {
		return func() {}, err
	}
	undo, err = MakeDir(s.Base)
	dir := s.Base
	for _, name := range below {
		if err != nil {
			break
		}
		// One after the other: a link that is there is not followed to make a folder elsewhere.
		outer := undo
		inner, made := s.makeOne(dir, name)
		undo, err = func() { inner(); outer() }, made
		dir = filepath.Join(dir, name)
	}
	return undo, err
}

// makeOne makes the folder of a name in another one, unless it exists.
func (s *Set) makeOne(dir, name string) (undo func(), err error) {
	nothing := func() {}
	parent, err := s.open(dir)
	if err != nil {
		return nothing, err
	}
	defer parent.Close()
	at := filepath.Join(dir, name)
	switch st, err := parent.Lstat(name); {
	case err == nil && !st.IsDir():
		return nothing, &TargetError{at, kind(st.Mode())}
	case err == nil:
		return nothing, nil
	}
	if err := parent.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nothing, withPath(at, err)
	}
	return func() {
		// Opened anew, as the set may be closed long after.
		if parent, err := s.open(dir); err == nil {
			_ = parent.Remove(name) // fails if it is not empty
			_ = parent.Close()
		}
	}, nil
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
	return errors.Join(f.Close(), f.Fail(f.place.root.Remove(f.name)))
}

// Publish renames all files in the order of their creation, but last at the end. After an error none is published, and
// those that would have been replaced are unchanged.
func (s *Set) Publish(last string) error {
	if i := s.index(last); i >= 0 {
		f := s.files[i]
		s.files = append(slices.Delete(s.files, i, i+1), f)
	}
	for _, f := range s.files {
		if err := errors.Join(f.Close(), s.Access.check(f.place.root, f.Path)); err != nil {
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
		for _, p := range s.places {
			syncFolder(p.root)
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
	base := filepath.Base(f.Path)
	backup := f.place.temporaryName("mcompress.replaced." + strconv.Itoa(i))
	// A link and not a rename: the old file keeps its name until the new one replaces it.
	if f.place.root.Link(base, backup) == nil {
		f.backup = backup
	}
	return f.Fail(f.place.root.Rename(f.name, base))
}

func (f *File) unpublish() error {
	base := filepath.Base(f.Path)
	if f.backup != "" {
		return f.Fail(f.place.root.Rename(f.backup, base))
	}
	return f.Fail(f.place.root.Remove(base))
}

// Close removes the files that are not published, the temporary folders, and those of MakeDir that are empty.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	for _, p := range s.places {
		errs = append(errs, p.close())
	}
	for _, undo := range slices.Backward(s.made) {
		undo()
	}
	s.files, s.places, s.made = nil, nil, nil
	return errors.Join(errs...)
}

// syncFolder makes renames durable. Systems that cannot sync a folder do not need it.
func syncFolder(root *os.Root) {
	if d, err := root.Open("."); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
