package ort

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Variable is the environment variable with the path of the library, used if there is no flag.
const Variable = "MCOMPRESS_ORT_LIB"

// remedy is a command that installs the library on every platform. ONNX Runtime is published as a Python package for
// all of them.
const remedy = "`pip install --no-deps --target ort onnxruntime==1.31.1`, then --ort-lib ort/onnxruntime/capi"

// Find returns the path of ONNX Runtime's library: that of the flag, else that of MCOMPRESS_ORT_LIB, else one next to
// the program, in the Python package onnxruntime of the program's environment, or in the system's library folders. A
// folder means the library in it. The error lists the searched folders and how to install the library.
func Find(flag string) (string, error) {
	if flag != "" {
		return named("--ort-lib", flag)
	}
	if path := os.Getenv(Variable); path != "" {
		return named(Variable, path)
	}
	folders := usualFolders()
	for _, folder := range folders {
		if path := libraryIn(folder); path != "" {
			return path, nil
		}
	}
	return "", fmt.Errorf("no ONNX Runtime: neither --ort-lib nor %s is set, and no %s is in %s; get it by %s",
		Variable, pattern(), strings.Join(folders, ", "), remedy)
}

// named searches one place only: an explicit path has no fallback.
func named(by, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%s: no ONNX Runtime: %w; get it by %s", by, err, remedy)
	}
	found := path
	if info.IsDir() {
		found = libraryIn(path)
	}
	if found != "" {
		return filepath.Abs(found) // a name without a folder would be searched in the system's folders
	}
	return "", fmt.Errorf("%s: no ONNX Runtime: there is no %s in %s; get it by %s", by, pattern(), path, remedy)
}

// libraryIn is the first library in the folder by name, empty if there is none.
func libraryIn(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if match, err := filepath.Match(pattern(), e.Name()); err == nil && match {
			return filepath.Join(folder, e.Name())
		}
	}
	return ""
}

// pattern matches the library's names with and without a version, and not those of its execution providers.
func pattern() string {
	switch runtime.GOOS {
	case "windows":
		return "onnxruntime.dll"
	case "darwin":
		return "libonnxruntime.*dylib"
	}
	return "libonnxruntime.so*"
}

// usualFolders excludes Windows's own: that library belongs to the system, and is old.
func usualFolders() []string {
	var folders []string
	if program, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(program); err == nil {
			program = target // as installers of Python programs link them
		}
		folders = append(folders, filepath.Dir(program))
		folders = append(folders, pythonFolders(filepath.Dir(filepath.Dir(program)))...)
	}
	switch runtime.GOOS {
	case "linux":
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		return append(folders, "/usr/local/lib", "/usr/lib/"+machine+"-linux-gnu", "/usr/lib64", "/usr/lib")
	case "darwin":
		return append(folders, "/opt/homebrew/lib", "/usr/local/lib")
	}
	return folders
}

// pythonFolders are the folders of the library in the Python packages onnxruntime below prefix. pip installs a program
// into bin or Scripts of a prefix, and packages into lib/python3.x/site-packages, on Windows Lib/site-packages, or with
// --target into the prefix.
func pythonFolders(prefix string) []string {
	var folders []string
	for _, pattern := range []string{"lib/python3*/site-packages/", "lib/python3*/dist-packages/",
		"Lib/site-packages/", ""} {
		found, err := fs.Glob(os.DirFS(prefix), pattern+"onnxruntime/capi")
		if err != nil {
			panic(err) // the patterns are valid
		}
		for _, folder := range found {
			folders = append(folders, filepath.Join(prefix, filepath.FromSlash(folder)))
		}
	}
	return folders
}
