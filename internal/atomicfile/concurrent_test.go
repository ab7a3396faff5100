package atomicfile

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Folders in use are not removed by others that are made at the same time in the same place. Locks belong to open
// files, so goroutines are like processes.
func TestConcurrentFolders(t *testing.T) {
	parent := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				f, err := NewFolder(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(f.Path, "file"), nil, 0o600); err != nil {
					t.Error(err)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
