package conform

import (
	"errors"
	"fmt"
	"io/fs"
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

// S3 runs VersityGW, an S3 server whose buckets are folders, on a free port of 127.0.0.1 until the test ends. It
// returns its URL and the folder of its one bucket. Without the program the test is skipped; in CI it fails.
func S3(t testing.TB, bucket string) (endpoint, folder string) {
	t.Helper()
	dir := t.TempDir()
	folder = filepath.Join(dir, bucket)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	endpoint, stop, err := ServeS3(dir, t.TempDir())
	if errors.Is(err, fs.ErrNotExist) {
		missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return endpoint, folder
}

// ServeS3 runs VersityGW until stop: its buckets are the folders in dir, and metadata is a folder for what it keeps
// besides. The error is fs.ErrNotExist without the program.
func ServeS3(dir, metadata string, flags ...string) (endpoint string, stop func(), err error) {
	root, err := Root()
	if err != nil {
		return "", nil, err
	}
	program := filepath.Join(root, ".s3", "s3server")
	if _, err := os.Stat(program); err != nil {
		return "", nil, fmt.Errorf("no S3 server to test object storage with (make .s3/s3server): %w", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	args := append([]string{"-access", S3AccessKey, "-secret", S3SecretKey, "-address", address, "-metadata", metadata}, flags...)
	cmd := exec.Command(program, append(args, dir)...)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for range 500 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address, stop, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("%s does not start", program)
}
