package ort_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/ort"
)

// libraryName is the file name of the library in its packages.
func libraryName() string {
	switch runtime.GOOS {
	case "windows":
		return "onnxruntime.dll"
	case "darwin":
		return "libonnxruntime.1.31.1.dylib"
	}
	return "libonnxruntime.so.1.31.1"
}

func folderWith(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFlagPrecedesVariable(t *testing.T) {
	flag, variable := folderWith(t, libraryName()), folderWith(t, libraryName())
	t.Setenv(ort.Variable, variable)
	for given, want := range map[string]string{
		flag:                               filepath.Join(flag, libraryName()),
		filepath.Join(flag, libraryName()): filepath.Join(flag, libraryName()),
		"":                                 filepath.Join(variable, libraryName()),
	} {
		if got, err := ort.Find(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", given, got, err, want)
		}
	}
}

// The dynamic loader searches other folders for a name without a folder.
func TestFindReturnsAbsolutePaths(t *testing.T) {
	dir := folderWith(t, libraryName())
	t.Chdir(dir)
	for _, flag := range []string{libraryName(), "."} {
		if got, err := ort.Find(flag); err != nil || !filepath.IsAbs(got) {
			t.Errorf("%q: got %q, %v", flag, got, err)
		}
	}
}

func TestFindIgnoresProviderLibraries(t *testing.T) {
	_, err := ort.Find(folderWith(t, "libonnxruntime_providers_shared.so", "libonnxruntime_providers_shared.dylib",
		"onnxruntime_providers_shared.dll"))
	if err == nil || !strings.Contains(err.Error(), "--ort-lib: no ONNX Runtime") {
		t.Errorf("got %v", err)
	}
}

func TestFindErrorListsFoldersAndRemedy(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, variable, want string }{
		{missing, "", "--ort-lib: "},
		{"", missing, ort.Variable + ": "},
		{"", "", filepath.Dir(program)},
	} {
		t.Setenv(ort.Variable, c.variable)
		path, err := ort.Find(c.flag)
		if err == nil && c.flag+c.variable == "" {
			t.Logf("a library was found on this machine: %s", path)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "pip install") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
