package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// resume opens the file of Resume in a new set.
func resume(t *testing.T, path string) (*Set, *File) {
	t.Helper()
	s := &Set{}
	f, err := s.Resume(path, "key")
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

func TestResumedFileHasItsContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, f := resume(t, path)
		if _, err := f.Seek(0, io.SeekEnd); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "part "); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, path); got != "old" {
		t.Errorf("got %q before it is published", got)
	}
	s, _ := resume(t, path)
	if err := errors.Join(s.Publish(path), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path) + ", " + names(t, dir); got != "part part , model" {
		t.Errorf("got %q", got)
	}
}

func TestResumedFileIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	s, _ := resume(t, path)
	if err := errors.Join(s.Remove(path), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Dir(path)); got != "" {
		t.Errorf("left: %s", got)
	}
}

// A publication that fails restores the file that a resumed one replaced.
func TestResumedFileReplacesOnlyWithTheOthers(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if err := os.WriteFile(first, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, _ := resume(t, first)
	if err := s.WriteFile(second, text("new")); err != nil {
		t.Fatal(err)
	}
	renamed := 0
	s.renaming = func() {
		if renamed++; renamed == 2 {
			if err := os.Mkdir(second, 0o755); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.Publish(second); err == nil {
		t.Error("published")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := content(t, first); got != "old" {
		t.Errorf("got %q", got)
	}
}

func TestResumedFileIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	s, f := resume(t, path)
	defer s.Close()
	if err := tryLock(f.File); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	other := &Set{}
	defer other.Close()
	if _, err := other.Resume(path, "key"); err == nil || err.Error() != path+": another process writes the same file" {
		t.Errorf("got %v", err)
	}
}

// What is not a file that only this user can have made is replaced, and what else it is a name of is unchanged.
func TestResumeOfForeignFiles(t *testing.T) {
	for name, plant := range map[string]func(precious, at string) error{
		"a link":                 os.Symlink,
		"a link to nothing":      func(_, at string) error { return os.Symlink("nothing", at) },
		"another name of a file": os.Link,
		"a file of another user": func(precious, at string) error {
			return errors.Join(os.WriteFile(at, []byte("planted"), 0o666), os.Chown(at, 65534, 65534))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, elsewhere := t.TempDir(), t.TempDir()
			precious, planted := filepath.Join(elsewhere, "x"), filepath.Join(dir, resumed+"key")
			if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := plant(precious, planted); err != nil {
				t.Skip(err)
			}
			path := filepath.Join(dir, "model")
			s, f := resume(t, path)
			if _, err := io.WriteString(f, "new"); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Publish(path), s.Close()); err != nil {
				t.Fatal(err)
			}
			if got := content(t, path) + " " + content(t, precious); got != "new precious" {
				t.Errorf("got %q", got)
			}
			st, err := os.Lstat(path)
			if err != nil || !st.Mode().IsRegular() || !isOwn(st) {
				t.Errorf("the result is %v, %v", st, err)
			}
		})
	}
}

// A pipe in the place of a file that is locked is an error, not an endless wait, and so is a folder.
func TestOpenLockedOfSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"folder", "link"} {
		var foreign *ForeignError
		if f, err := OpenLocked(root, name, 0o600); !errors.As(err, &foreign) {
			t.Errorf("%s: got %v, %v", name, f, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("a file is made through a link")
	}
}
