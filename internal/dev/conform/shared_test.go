package conform

import (
	"path/filepath"
	"strings"
	"testing"
)

// Whether a method did harm is only seen on models that run: all real ones do, but
// those of a domain that ONNX Runtime does not know.
func TestSharedModelsRunOnTheirInputs(t *testing.T) {
	w, dir := Start(t), filepath.Join(Shared(t), "fixtures", "models")
	for _, path := range ModelsBelow(t, dir) {
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
