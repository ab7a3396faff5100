package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names are the entries of a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func TestFilesHaveTheirNamesOnlyAfterPublish(t *testing.T) {
	dir := t.TempDir()
	s := &Set{}
	for _, name := range []string{"model", "report"} {
		if err := s.WriteFile(filepath.Join(dir, name), text(name)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s before it is published: %v", name, err)
		}
	}
	if err := s.Publish(filepath.Join(dir, "model")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); got != "model report" {
		t.Errorf("got %s", got)
	}
}

func TestNothingIsLeftOfASetThatIsNotPublished(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Write(path, Access{}, func(w io.Writer) error { return errors.Join(text("half")(w), broken) })
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("got %v", err)
	}
	if names(t, dir) != "model" || content(t, path) != "old" {
		t.Errorf("got %s, %s", names(t, dir), content(t, path))
	}
}

// A rename that fails in the middle: the last file is missing.
func TestAFailedPublicationIsUndone(t *testing.T) {
	dir := t.TempDir()
	replaced, added, last := filepath.Join(dir, "replaced"), filepath.Join(dir, "added"), filepath.Join(dir, "last")
	if err := os.WriteFile(replaced, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Set{}
	for _, path := range []string{last, replaced, added} {
		if err := s.WriteFile(path, text("new")); err != nil {
			t.Fatal(err)
		}
	}
	staged, err := s.Folder(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(staged, "last")); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(last); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); got != "replaced" || content(t, replaced) != "old" {
		t.Errorf("left: %s; the replaced file has %q", got, content(t, replaced))
	}
}

func TestFilesOfARunAreNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := Like(path)
	if err != nil {
		t.Fatal(err)
	}
	var refused *TargetError
	if err := Write(path, a, text("")); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}
