package conform

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Fixtures are the repository's own models, without outputs of
// the tool, whose names have more than one dot.
func Fixtures(t testing.TB) []string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := Matching(root, "fixtures/*.onnx")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d models in fixtures: %v", len(paths), err)
	}
	return paths
}

// RealModels are the third-party models of the shared material, most of them trained.
func RealModels(t testing.TB) []string {
	t.Helper()
	return ModelsBelow(t, filepath.Join(Shared(t), "fixtures", "models"))
}

// ModelsBelow are the models below a folder, in the order of their paths. Where there is
// none, the test fails.
func ModelsBelow(t testing.TB, folder string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".onnx") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d models below %s: %v", len(paths), folder, err)
	}
	return paths
}
