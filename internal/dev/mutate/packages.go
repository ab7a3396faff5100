package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A pkg is a package as `go list` describes it.
type pkg struct {
	Dir, ImportPath                    string
	GoFiles                            []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string

	importers []string // packages with tests that import it
}

// list describes the packages that match the patterns, with their importers in the module.
func list(ctx context.Context, patterns []string) (map[string]*pkg, error) {
	all, err := goList(ctx, "./...")
	if err != nil {
		return nil, err
	}
	chosen, err := goList(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	found := map[string]*pkg{}
	for i, p := range chosen {
		found[p.ImportPath] = &chosen[i]
	}
	for _, q := range all {
		if len(q.TestGoFiles)+len(q.XTestGoFiles) == 0 {
			continue
		}
		for _, path := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(q.Imports, q.TestImports,
			q.XTestImports)))) {
			if p := found[path]; p != nil && path != q.ImportPath {
				p.importers = append(p.importers, q.ImportPath)
			}
		}
	}
	return found, nil
}

func goList(ctx context.Context, patterns ...string) ([]pkg, error) {
	out, err := output(ctx, "go", append([]string{"list", "-json"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var list []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// output runs a command and returns what it prints.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// files are the paths of the sources of p.
func (p *pkg) files() []string {
	var paths []string
	for _, name := range p.GoFiles {
		paths = append(paths, filepath.Join(p.Dir, name))
	}
	return paths
}

// relative is a path in the current folder, the module's.
func relative(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if r, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(r)
	}
	return path
}

// changedLines are the lines of Go files that changed since a revision, by file; nil without a revision.
func changedLines(ctx context.Context, since string) (map[string]map[int]bool, error) {
	if since == "" {
		return nil, nil
	}
	out, err := output(ctx, "git", "diff", "--unified=0", since, "--", "*.go")
	if err != nil {
		return nil, err
	}
	lines := map[string]map[int]bool{}
	var now map[int]bool
	for _, l := range strings.Split(string(out), "\n") {
		if name, ok := strings.CutPrefix(l, "+++ b/"); ok {
			now = map[int]bool{}
			lines[name] = now
		} else if strings.HasPrefix(l, "@@ ") {
			addHunk(now, strings.Fields(l)[2])
		}
	}
	return lines, nil
}

// addHunk adds the lines of a hunk's new side, "+first,number".
func addHunk(lines map[int]bool, text string) {
	at, number, _ := strings.Cut(strings.TrimPrefix(text, "+"), ",")
	first, _ := strconv.Atoi(at)
	n, err := strconv.Atoi(number)
	if err != nil {
		n = 1
	}
	for i := range n {
		lines[first+i] = true
	}
}
