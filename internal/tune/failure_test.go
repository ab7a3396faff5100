package tune

import (
	"errors"
	"path/filepath"
	"testing"
)

// Errors of candidates, which reports have, name files without their folders: those of temporary ones differ in each
// run.
func TestFailuresNameNoFolders(t *testing.T) {
	for _, temporary := range []string{t.TempDir(), ""} {
		var failed string
		tu := &tuner{Options: Options{Dir: temporary, Input: filepath.Join(t.TempDir(), "m.onnx")}}
		text := filepath.Join(temporary, "0.ranges.json") + " of " + tu.Input + ": 1/2"
		if err := tu.recordFailure(t.Context(), errors.New(text), &failed); err != nil ||
			failed != "0.ranges.json of m.onnx: 1/2" {
			t.Errorf("folder %q: %q, %v", temporary, failed, err)
		}
	}
}
