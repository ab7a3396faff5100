package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// npm installs the launcher and the package of this platform from files alone, and npx runs the program.
func TestNPMInstalls(t *testing.T) {
	npm, npx := require(t, "npm"), require(t, "npx")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "package.json"), []byte("{}"), 0o644)
	packages, err := filepath.Glob(filepath.Join(dist, "npm", "*.tgz"))
	if err != nil || len(packages) != 2 {
		t.Fatalf("%q, %v", packages, err)
	}
	c := exec.Command(npm, append([]string{"install", "--offline", "--no-audit", "--no-fund", "--cache", filepath.Join(dir, "cache")}, packages...)...)
	c.Dir = dir
	output(t, c)
	compress(t, func(args ...string) *exec.Cmd {
		c := exec.Command(npx, append([]string{"--offline", "mcompress"}, args...)...)
		c.Dir = dir
		return c
	})
	for _, name := range []string{"LICENSE", "THIRD_PARTY_LICENSES.txt"} {
		for _, folder := range []string{"mcompress", "@mcompress/*"} {
			if found, _ := filepath.Glob(filepath.Join(dir, "node_modules", folder, name)); len(found) != 1 {
				t.Errorf("%s has no %s", folder, name)
			}
		}
	}
	launcher := filepath.Join(dir, "node_modules", ".bin", "mcompress")
	if code := exitCode(exec.Command(launcher, "quantize", "no.onnx")); code != 1 {
		t.Errorf("a missing model: exit code %d, want 1", code)
	}
	terminated(t, launcher, dir)
	if err := os.RemoveAll(filepath.Join(dir, "node_modules", "@mcompress")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(launcher, "version").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not installed") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("without the package of the platform: %v\n%s", err, out)
	}
}

// terminated sends SIGTERM to the launcher, which passes it on and returns the exit code of the program: here a script in its place.
func terminated(t *testing.T, launcher, dir string) {
	t.Helper()
	programs, err := filepath.Glob(filepath.Join(dir, "node_modules", "@mcompress", "*", "bin", "mcompress"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("%q, %v", programs, err)
	}
	write(t, programs[0], []byte("#!/bin/sh\ntrap 'exit 7' TERM\necho ready\nwhile :; do sleep 0.1; done\n"), 0o755)
	c := exec.Command(launcher)
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d, the program's is 7", code)
	}
}

func exitCode(c *exec.Cmd) int {
	_ = c.Run()
	return c.ProcessState.ExitCode()
}
