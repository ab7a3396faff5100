package conform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Start returns the worker of this test binary, started with the first question.
// Where its Python is missing it skips the test, or fails it where CI=true.
func Start(t testing.TB) *Worker {
	t.Helper()
	Python(t)
	return shared()
}

// Python returns the path of the Python that has the requirements of the tests: MCOMPRESS_PYTHON, else that of .venv.
// Where it is missing it skips the test, or fails it where CI=true. It fails the test if a package is not the pinned
// one.
func Python(t testing.TB) string {
	t.Helper()
	python, err := pythonPath()
	if err != nil {
		missing(t, err)
	}
	if err := pinned(python); err != nil {
		t.Fatal(err)
	}
	return python
}

// Shared returns the folder of the shared test material: MCOMPRESS_SHARED, else
// ../shared from the repository's root. Where it is missing Shared skips the test,
// or fails it where CI=true.
func Shared(t testing.TB) string {
	t.Helper()
	folder, err := sharedPath()
	if err != nil {
		missing(t, err)
	}
	return folder
}

// ORTLibrary returns the path of the shared library in the worker's ONNX Runtime. Where
// it is missing it skips the test, or fails it where CI=true.
func ORTLibrary(t testing.TB) string {
	t.Helper()
	python := Python(t)
	pattern := filepath.Join(filepath.Dir(python), "..", "lib", "python*", "site-packages", "onnxruntime", "capi",
		"libonnxruntime.*")
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no library of ONNX Runtime at %s", pattern)
	}
	if err != nil {
		missing(t, err)
	}
	return found[0]
}

// Root returns the folder of go.mod, found upward from the working folder, which is
// that of the package under test.
func Root() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod at or above the working folder")
		}
		at = filepath.Dir(at)
	}
}

// Tracked returns the files below root that git tracks and that exist, with slashes: results of commands, environments
// and notes of a developer in a checkout are no sources.
func Tracked(root string) ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(name string) bool {
		if name == "" {
			return true
		}
		_, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		return errors.Is(err, fs.ErrNotExist)
	}), nil
}

// Matching returns the paths of tracked files below root whose names match a pattern of path.Match.
func Matching(root, pattern string) ([]string, error) {
	names, err := Tracked(root)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if ok {
			paths = append(paths, filepath.Join(root, filepath.FromSlash(name)))
		}
	}
	return paths, nil
}

func pythonPath() (string, error) {
	python, err := fromEnv("MCOMPRESS_PYTHON", filepath.Join(".venv", "bin", "python"))
	if err != nil {
		return "", fmt.Errorf("no Python to check models with (%w); `make test` makes one", err)
	}
	return python, nil
}

func sharedPath() (string, error) {
	folder, err := fromEnv("MCOMPRESS_SHARED", filepath.Join("..", "shared"))
	if err != nil {
		return "", fmt.Errorf("no shared test material (%w)", err)
	}
	return folder, nil
}

// fromEnv returns the path that the variable names, else otherwise below the root,
// if it is there.
func fromEnv(variable, otherwise string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		root, err := Root()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, otherwise)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s: %w", variable, err)
	}
	return path, nil
}

// missing ends the test: a machine that lacks something may skip, CI may not.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}
