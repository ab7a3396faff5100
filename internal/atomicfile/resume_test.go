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

// Only regular files are resumed.
func TestResumeOfALink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(filepath.Join(elsewhere, "x"), filepath.Join(dir, resumed+"key")); err != nil {
		t.Skip(err)
	}
	s := &Set{}
	_, err := s.Resume(filepath.Join(dir, "model"), "key")
	var target *TargetError
	if !errors.As(err, &target) || names(t, elsewhere) != "" {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
