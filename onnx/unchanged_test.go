package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file of a model that is written in place or replaced is noticed, also if its size and time are restored.
func TestCheckUnchanged(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(data string) error
		changed bool
	}{
		"overwritten": {func(data string) error { return os.WriteFile(data, make([]byte, 8), 0o644) }, true},
		"longer":      {func(data string) error { return os.WriteFile(data, make([]byte, 9), 0o644) }, true},
		"overwritten, with its time": {func(data string) error {
			st, err := os.Stat(data)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(data, make([]byte, 8), 0o644), os.Chtimes(data, st.ModTime(), st.ModTime()))
		}, true},
		"truncated": {func(data string) error { return os.Truncate(data, 0) }, true},
		"replaced": {func(data string) error {
			return errors.Join(os.WriteFile(data+".new", make([]byte, 8), 0o644), os.Rename(data+".new", data))
		}, true},
		"read": {func(data string) error {
			_, err := os.ReadFile(data)
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := inFolder(t, 8, "location", "w.bin")
			data := filepath.Join(filepath.Dir(path), "w.bin")
			// File systems round times.
			before := time.Now().Add(-time.Minute)
			if err := os.Chtimes(data, before, before); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // a status change within a tick of the clock has the same time
			f := mustOpen(t, path)
			if err := c.change(data); err != nil {
				t.Skip(err)
			}
			var changed *ChangedError
			if err := f.CheckUnchanged(); errors.As(err, &changed) != c.changed || !c.changed && err != nil {
				t.Errorf("got %v", err)
			}
			if c.changed && changed.Path != data {
				t.Errorf("got %s, want %s", changed.Path, data)
			}
		})
	}
}
