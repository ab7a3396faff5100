package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Labels of another order pass a gate on the drop of accuracy, as both models miss them: the result says that the
// accuracy is no better than a guess.
func TestAccuracyOfAGuessIsNoted(t *testing.T) {
	var labels strings.Builder
	for i := range 500 {
		fmt.Fprintln(&labels, i%2*((i+2)%10))
	}
	path := filepath.Join(t.TempDir(), "labels.jsonl")
	if err := os.WriteFile(path, []byte(labels.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join("..", "..", "fixtures", "mlp.onnx")
	verify := []string{"verify", model, model, "--data", filepath.Join("..", "..", "fixtures", "digits_test.npz")}
	for _, c := range []struct {
		args  []string
		noted bool
	}{{nil, false}, {[]string{"--labels", path}, true}} {
		code, stdout, stderr := call(append(verify, c.args...)...)
		if noted := strings.Contains(stdout, "naming the most frequent class each time 50 %"); code != exitDone ||
			noted != c.noted {
			t.Errorf("%v: exit code %d, noted %t, want %t: %s%s", c.args, code, noted, c.noted, stdout, stderr)
		}
	}
}
