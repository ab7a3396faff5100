package conform

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The credentials of S3.
const (
	S3AccessKey = "test"
	S3SecretKey = "test-secret"
)

// S3 runs VersityGW, an S3 server whose buckets are folders, on a free port of 127.0.0.1 until the test ends. It returns its URL and the folder of its one bucket.
// Without the program the test is skipped; in CI it fails.
func S3(t testing.TB, bucket string) (endpoint, folder string) {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(root, ".s3", "versitygw")
	if _, err := os.Stat(program); err != nil {
		missing(t, fmt.Errorf("no S3 server to test object storage with (make .s3/versitygw): %w", err))
	}
	dir, metadata := t.TempDir(), t.TempDir()
	folder = filepath.Join(dir, bucket)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--access", S3AccessKey, "--secret", S3SecretKey, "--port", address, "--quiet", "posix", "--sidecar", metadata, dir)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 500 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address, folder
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s does not start", program)
	return "", ""
}
