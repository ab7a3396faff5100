package conform

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// PullORAS pulls an artifact, HOST/REPOSITORY:TAG without TLS, by the Python client of ORAS and returns the paths of
// its files.
func (w *Worker) PullORAS(reference, folder string) (paths []string, err error) {
	return paths, w.call("pull_oras", map[string]any{"reference": reference, "folder": folder}, &paths)
}

// distribution is the program of Debian's package docker-registry: CNCF Distribution 2.8, an OCI registry without the
// referrers API.
const distribution = "docker-registry"

// distributionPath is the program on the PATH, or that which .ci/docker-registry unpacked.
func distributionPath() (string, error) {
	if program, err := exec.LookPath(distribution); err == nil {
		return program, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".registry", "usr", "bin", distribution)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no %s to test registries with (Debian's package %[1]s, or .ci/docker-registry): %w",
			distribution, err)
	}
	return path, nil
}

var listening = regexp.MustCompile(`listening on ([0-9.:]+)`)

// Distribution runs Debian's docker-registry on a free port of 127.0.0.1 until the test ends, and returns its host and
// port. config is added to its configuration; its storage is the folder root. Without the program the test is skipped;
// in CI it fails.
func Distribution(t testing.TB, root, config string) string {
	t.Helper()
	program, err := distributionPath()
	if err != nil {
		missing(t, err)
	}
	path := filepath.Join(t.TempDir(), "config.yml")
	text := "version: 0.1\nlog: {level: info, accesslog: {disabled: true}}\nhttp: {addr: '127.0.0.1:0'}\nstorage:\n  filesystem: {rootdirectory: " + root + "}\n" + config
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", path)
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	var output []string
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				for lines.Scan() { // the program must not block on its log
				}
			}()
			return m[1]
		}
		output = append(output, lines.Text())
	}
	t.Fatalf("%s does not start: %s", distribution, strings.Join(output, "; "))
	return ""
}
