package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMakeDirRemovesWhatItMadeAndIsEmpty(t *testing.T) {
	parent := t.TempDir()
	deep := filepath.Join(parent, "a", "b")
	undo, err := MakeDir(deep)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(deep); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "a", "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	undo()
	if _, err := os.Stat(deep); err == nil {
		t.Error("an empty folder that MakeDir made is left")
	}
	if _, err := os.Stat(filepath.Join(parent, "a", "file")); err != nil {
		t.Error(err)
	}
	if undo, err = MakeDir(parent); err != nil {
		t.Fatal(err)
	}
	undo()
	if _, err := os.Stat(parent); err != nil {
		t.Error("a folder that was there is removed")
	}
}

func TestSetRemovesFoldersWithoutFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, publish := range []bool{false, true} {
		s := &Set{}
		path := filepath.Join(dir, "file")
		if err := s.MakeDir(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(path); err != nil {
			t.Fatal(err)
		}
		if publish {
			if err := s.Publish(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); (err == nil) != publish {
			t.Errorf("published %v: %v", publish, err)
		}
	}
}
