package atomicfile

import (
	"errors"
	"os"
	"testing"
)

// Another process may take a folder for that of a killed one between the release of its lock and its removal.
func TestCloseOfRemovedFolder(t *testing.T) {
	f, err := NewFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.lock.Close(); err != nil {
		t.Fatal(err)
	}
	Sweep(f.Path + "/..")
	if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
		t.Fatalf("%s is not removed: %v", f.Path, err)
	}
	if err := errors.Join(removeContent(f.root), removeEmpty(f.parent, f.name)); err != nil {
		t.Error(err)
	}
}
