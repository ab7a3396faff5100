package ort_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Only the binding makes the program dynamically linked.
func TestTagExcludesBinding(t *testing.T) {
	for _, c := range []struct {
		tags string
		want bool
	}{{"", true}, {"noort", false}} {
		cmd := exec.Command("go", "list", "-deps", "-tags", c.tags, ".")
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.Contains(string(out), "purego"); got != c.want {
			t.Errorf("tags %q: purego is linked: %v, want %v", c.tags, got, c.want)
		}
	}
}
