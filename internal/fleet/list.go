package fleet

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mcompress/mcompress/internal/bounded"
)

// MaxList is the maximum size of a list of models in bytes: that of a million paths.
const MaxList = 128 << 20

// ReadList returns the paths of a list, separated by NUL if it has one, as find -print0 writes them, else by newlines.
// Empty lines are left out.
func ReadList(r io.Reader) ([]string, error) {
	text, err := bounded.Read(r, MaxList)
	if err != nil {
		return nil, err
	}
	separator := "\n"
	if bytes.IndexByte(text, 0) >= 0 {
		separator = "\x00"
	}
	budget := bounded.NewBudget()
	if err := budget.Take(2 * int64(len(text))); err != nil {
		return nil, err
	}
	var paths []string
	for line := range strings.SplitSeq(string(text), separator) {
		if separator == "\n" {
			line = strings.TrimSuffix(line, "\r")
		}
		if line == "" {
			continue
		}
		// Lists are grown by copying.
		if err := budget.Take(2 * int64(unsafe.Sizeof(line))); err != nil {
			return nil, err
		}
		paths = append(paths, line)
	}
	return paths, nil
}

// Expand replaces patterns, such as models/**/*.onnx, by the files that match them, sorted. A path of a file is none,
// and neither is a URL, even if it has characters of patterns; a pattern that no file matches is an error.
func Expand(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil || strings.Contains(path, "://") || !strings.ContainsAny(path, "*?[{") {
			all = append(all, path)
			continue
		}
		if err := bounded.CheckPattern(path); err != nil {
			return nil, err
		}
		found, err := doublestar.FilepathGlob(path, doublestar.WithFilesOnly())
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		case len(found) == 0:
			return nil, fmt.Errorf("%s: no such file, and no file matches it as a pattern", path)
		}
		slices.Sort(found)
		all = append(all, found...)
	}
	return all, nil
}
