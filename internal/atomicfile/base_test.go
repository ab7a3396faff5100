package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files with names from elsewhere come to be below the folder of the output, through no link.
func TestBase(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		links map[string]string // in the folder of the output
		fails string
	}{
		"below":                    {path: "a/b/file"},
		"in the folder":            {path: "file"},
		"a link elsewhere":         {"a/b/file", map[string]string{"a": "../elsewhere"}, "symbolic link"},
		"a deeper link elsewhere":  {"folder/b/file", map[string]string{"folder/b": "../../elsewhere"}, "symbolic link"},
		"a link within":            {"a/b/file", map[string]string{"a": "folder"}, "symbolic link"},
		"the file is a link":       {"file", map[string]string{"file": "../elsewhere/file"}, "symbolic link"},
		"out of it":                {"../elsewhere/file", nil, "not in the folder of the output"},
		"another folder with dots": {"a/../../elsewhere/file", nil, "not in the folder of the output"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			base, elsewhere := filepath.Join(dir, "out"), filepath.Join(dir, "elsewhere")
			if err := errors.Join(os.MkdirAll(filepath.Join(base, "folder"), 0o755), os.Mkdir(elsewhere, 0o755)); err != nil {
				t.Fatal(err)
			}
			for at, to := range c.links {
				if err := os.Symlink(to, filepath.Join(base, at)); err != nil {
					t.Skip(err)
				}
			}
			before := names(t, base)
			s := &Set{Base: base}
			path := base + "/" + c.path
			err := s.MakeDir(filepath.Dir(path))
			if err == nil {
				err = s.WriteFile(path, text("new"))
			}
			if err == nil {
				err = s.Publish(path)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if got := names(t, elsewhere); got != "" {
				t.Errorf("written elsewhere: %s", got)
			}
			if err == nil {
				if got := content(t, path); got != "new" {
					t.Errorf("got %q", got)
				}
			} else if got := names(t, base); got != before {
				t.Errorf("left: %s, before: %s", got, before)
			}
		})
	}
}

// A folder that is replaced by a link while a set is open does not lead its files elsewhere.
func TestFolderThatBecomesALink(t *testing.T) {
	dir := t.TempDir()
	base, elsewhere := filepath.Join(dir, "out"), filepath.Join(dir, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &Set{Base: base}
	path := filepath.Join(base, "a", "file")
	if err := errors.Join(s.MakeDir(filepath.Dir(path)), s.WriteFile(path, text("new"))); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(base, "moved")
	if err := os.Rename(filepath.Dir(path), moved); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("../elsewhere", filepath.Dir(path)); err != nil {
		t.Skip(err)
	}
	if err := errors.Join(s.Publish(path), s.Close()); err != nil {
		t.Error(err)
	}
	if got := names(t, elsewhere) + "|" + names(t, moved); got != "|file" {
		t.Errorf("got %s", got)
	}
}

// A temporary folder whose name becomes that of a link is removed through the folder that was opened.
func TestSweepFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "elsewhere")
	f, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{elsewhere, filepath.Join(elsewhere, "folder")} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(elsewhere, lockName), filepath.Join(elsewhere, "precious")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	moved := filepath.Join(dir, "moved")
	if err := os.Rename(f.Path, moved); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("elsewhere", f.Path); err != nil {
		t.Skip(err)
	}
	Sweep(dir)
	if got := names(t, elsewhere); got != "folder mcompress.lock precious" {
		t.Errorf("swept through a link: %s", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := names(t, elsewhere) + "|" + names(t, moved); got != "folder mcompress.lock precious|" {
		t.Errorf("left: %s", got)
	}
}

// Only folders that nobody else can have filled are trusted.
func TestOpenPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "own"), 0o755), os.Mkdir(filepath.Join(dir, "shared"), 0o777),
		os.Chmod(filepath.Join(dir, "shared"), 0o777), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("own", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "others"), 0o755), os.Chown(filepath.Join(dir, "others"), 65534, 0)); err == nil {
		defer func() {
			var foreign *ForeignError
			if _, err := OpenPrivate(filepath.Join(dir, "others")); !errors.As(err, &foreign) {
				t.Errorf("of another user: got %v", err)
			}
		}()
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := openFolder(root, "link"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link is opened as a folder: %v", err)
	}
	for name, trusted := range map[string]bool{"own": true, "new": true, "shared": false, "link": false, "file": false} {
		var foreign *ForeignError
		root, err := OpenPrivate(filepath.Join(dir, name))
		if (err == nil) != trusted || err != nil && !errors.As(err, &foreign) {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			_ = root.Close()
		}
	}
}
