package atomicfile

import (
	"os"
	"path/filepath"
)

// MakeDir makes the folder path and missing parents. undo removes those that it made and that are empty, so that a
// failed run leaves none.
func MakeDir(path string) (undo func(), err error) {
	var made []string // parents last
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, dir)
	}
	undo = func() {
		for _, dir := range made {
			_ = os.Remove(dir) // fails if it is not empty
		}
	}
	// What is missing was listed before: MkdirAll does not report what it made, and another process may make a
	// parent at the same time, which Remove keeps while it has content.
	if err := os.MkdirAll(path, 0o777); err != nil {
		undo()
		return func() {}, err
	}
	return undo, nil
}
