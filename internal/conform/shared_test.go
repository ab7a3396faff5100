package conform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modelsBelow returns every .onnx file below dir.
func modelsBelow(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".onnx") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d models in %s: %v", len(paths), dir, err)
	}
	return paths
}

// Whether a method did harm is only seen on models that run: all real ones do, but
// those of a domain that ONNX Runtime does not know.
func TestSharedModelsRunOnTheirInputs(t *testing.T) {
	w, dir := Start(t), filepath.Join(Shared(t), "fixtures", "models")
	for _, path := range modelsBelow(t, dir) {
		outputs, err := w.Compare(path, path, Options{})
		custom := strings.Contains(path, "custom_domain")
		if (err != nil) != custom {
			t.Errorf("%s: %v", path, err)
		}
		for _, o := range outputs {
			if !o.Equal {
				t.Errorf("%s: output %s is not equal to itself: %+v", path, o.Name, o)
			}
		}
	}
}
