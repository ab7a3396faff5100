package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAssemblyIsGenerated detects edits of the assembly or of the generator without the other. The generator is a
// module of its own; only outside CI may it be missing.
func TestAssemblyIsGenerated(t *testing.T) {
	if out, err := run(t, "mod", "download"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("internal/kernel/gen: go mod download: %v\n%s", err, out)
		}
		t.Skipf("the modules of internal/kernel/gen cannot be downloaded: %v\n%s", err, out)
	}
	if out, err := run(t, "test", "."); err != nil {
		t.Errorf("tests of the generator: %v\n%s", err, out)
	}
	files, err := filepath.Glob("*_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no assembly: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, "_amd64.s"), isFresh)
	}
}

// isFresh runs the generator for the family named by the subtest.
func isFresh(t *testing.T) {
	_, family, _ := strings.Cut(t.Name(), "/")
	assembly := filepath.Join(t.TempDir(), family+"_amd64.s")
	stubs := strings.TrimSuffix(assembly, ".s") + ".go"
	if out, err := run(t, "run", ".", "-family", family, "-pkg", "kernel", "-out", assembly,
		"-stubs", stubs); err != nil {
		t.Fatalf("generator: %v\n%s", err, out)
	}
	for _, fresh := range []string{assembly, stubs} {
		if name := filepath.Base(fresh); !bytes.Equal(body(t, fresh), body(t, name)) {
			t.Errorf("%s is stale: run `go generate ./internal/kernel`", name)
		}
	}
}

// run calls the go command in the generator's module.
func run(t *testing.T, args ...string) (output []byte, err error) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"-C", "gen"}, args...)...)
	// Settings of the test itself, such as another GOARCH, are not the generator's.
	cmd.Env = append(os.Environ(), "GOOS=", "GOARCH=", "GOWORK=off")
	return cmd.CombinedOutput()
}

// body is a file without its first line, which holds the generator's arguments.
func body(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	return rest
}
