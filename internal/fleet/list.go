package fleet

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// MaxList is the maximum size of a list of models in bytes: that of a million paths.
const MaxList = 128 << 20

// ReadList returns the paths of a list, separated by NUL if it has one, as find -print0 writes them, else by newlines.
// Empty lines are left out.
func ReadList(r io.Reader) ([]string, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxList+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > MaxList:
		return nil, fmt.Errorf("more than %d bytes", MaxList)
	}
	separator := "\n"
	if bytes.IndexByte(text, 0) >= 0 {
		separator = "\x00"
	}
	lines := strings.Split(string(text), separator)
	for i, line := range lines {
		if separator == "\n" {
			lines[i] = strings.TrimSuffix(line, "\r")
		}
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" }), nil
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
