package sign

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/folder"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// Suffix is that of signatures: NAME.sig is that of NAME.onnx.
const Suffix = ".sig"

// DefaultPath is where the signature of a model is by default, NAME.sig next to it, or that of a folder, model.sig in
// it.
func DefaultPath(path string) string {
	if isFolder(path) {
		return filepath.Join(path, "model"+Suffix)
	}
	return report.Stem(path) + Suffix
}

// Files are those that a signature covers.
type Files struct {
	Root  string   // a folder
	Names []string // paths in it, with slashes; nil for all files of the folder
}

// FilesOf are the files of a folder, or those of a model: the model, its external data, the files that it needs from a
// folder with configuration, and its reports next to it but for those with times of the run.
func FilesOf(ctx context.Context, path string) (Files, error) {
	if isFolder(path) {
		return Files{Root: path}, nil
	}
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return Files{}, err
	}
	paths := f.Paths()
	if err := f.Close(); err != nil {
		return Files{}, err
	}
	root := folder.Root(path)
	if root != filepath.Dir(path) {
		root = "" // a signature covers the folder that it is in, not the one above
	}
	names, err := folder.Files(root, path)
	if err != nil {
		return Files{}, err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, Suffix) { // that of the folder covers this one
			paths = append(paths, filepath.Join(filepath.Dir(path), name))
		}
	}
	for _, f := range report.Formats() {
		if p := f.Path(path); !f.Local && exists(p) {
			paths = append(paths, p)
		}
	}
	return ofModel(path, paths)
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ofModel are the paths relative to the folder of the model.
func ofModel(model string, paths []string) (Files, error) {
	fs := Files{Root: filepath.Dir(model)}
	for _, p := range paths {
		name, err := filepath.Rel(fs.Root, p)
		if err != nil || !filepath.IsLocal(name) {
			return fs, fmt.Errorf("%s is outside of the folder of the model", p)
		}
		fs.Names = append(fs.Names, filepath.ToSlash(name))
	}
	return fs, nil
}

// gitPaths are the paths that model-signing ignores in a folder by default.
func gitPaths() []string { return []string{".git", ".gitattributes", ".github", ".gitignore"} }

// list returns the names of the files that a signature covers. As in model-signing, these are all files of a folder
// that are neither ignored paths nor below one.
func (f Files) list(ignored []string) ([]string, error) {
	if f.Names != nil {
		return slices.DeleteFunc(slices.Clone(f.Names), func(name string) bool { return covers(ignored, name) }), nil
	}
	var names []string
	err := filepath.WalkDir(f.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(f.Root, path)
		switch name = filepath.ToSlash(name); {
		case err != nil:
			return err
		// Not descended into, as in model-signing: .git has thousands of files.
		case covers(ignored, name) && d.IsDir():
			return fs.SkipDir
		case !covers(ignored, name) && !d.IsDir():
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// ownName is the name of the signature at path, if that is in the folder.
func (f Files) ownName(path string) []string {
	folder, err := filepath.Abs(f.Root)
	if err != nil {
		return nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil
	}
	name, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(name) {
		return nil
	}
	return []string{filepath.ToSlash(name)}
}

// covers reports whether name is one of paths or below one.
func covers(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

// path is the place of a file.
func (f Files) path(name string) string { return filepath.Join(f.Root, filepath.FromSlash(name)) }

// A kindError is a file that cannot be signed.
type kindError struct{ why string }

func (e *kindError) Error() string { return e.why }

// check returns an error unless name is that of a regular file, or of a symbolic link to one if those are followed.
func (f Files) check(name string, symlinks bool) error {
	st, err := os.Lstat(f.path(name))
	if err != nil {
		return err
	}
	// A link to a folder is an error, too: model-signing follows none, so that the files behind it would not be
	// covered.
	if st.Mode()&fs.ModeSymlink != 0 {
		if !symlinks {
			return &kindError{"a symbolic link, which is not signed"}
		}
		if st, err = os.Stat(f.path(name)); err != nil {
			return err
		}
	}
	if !st.Mode().IsRegular() {
		return &kindError{"not a regular file"}
	}
	return nil
}

// sums returns the files with their digests.
func (f Files) sums(ctx context.Context, names []string, progress func(done, total int64)) ([]File, error) {
	files, m := make([]File, len(names)), meter{report: progress}
	for _, name := range names {
		st, err := os.Stat(f.path(name))
		if err != nil {
			return nil, err
		}
		m.total += st.Size()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		g.Go(func() error {
			sum, _, err := digest.File(ctx, f.path(name), &m)
			files[i] = File{name, sum}
			return err
		})
	}
	return files, g.Wait()
}

// A meter counts the bytes that are written to it.
type meter struct {
	done   atomic.Int64
	total  int64
	report func(done, total int64) // may be nil
}

func (m *meter) Write(b []byte) (int, error) {
	if n := m.done.Add(int64(len(b))); m.report != nil {
		m.report(n, m.total)
	}
	return len(b), nil
}
