//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// TestKilledTrainingResumes kills training repeatedly, after increasing delays, and resumes it each time: the model is bit-identical
// to that of an uninterrupted run, and no partial file is left.
func TestKilledTrainingResumes(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fixtures, scratch := filepath.Dir(conform.Fixtures(t)[0]), t.TempDir()
	train := func(dir string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, "mcompress"), "finetune", "cnn.onnx", "--data", "digits_test.npz", "--epochs", "4", "--dropout", "0.1",
			"--save", "state.zip", "--save-every", "1", "--resume", "-o", "out.onnx", "--report", "none", "-q", "--no-verify")
		c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+scratch) // a killed process leaves temporary files there
		return c
	}
	folder := func() string {
		dir := t.TempDir()
		for _, name := range []string{"cnn.onnx", "digits_test.npz"} {
			b, err := os.ReadFile(filepath.Join(fixtures, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(exe, filepath.Join(dir, "mcompress")); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	plain, broken := folder(), folder()
	if out, err := train(plain).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	kills := 0
	for delay := 100 * time.Millisecond; ; delay += 50 * time.Millisecond {
		var stderr bytes.Buffer
		c := train(broken)
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(delay, func() { _ = c.Process.Kill() })
		err := c.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		if c.ProcessState.ExitCode() >= 0 {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		kills++
		if _, err := os.Stat(filepath.Join(broken, "out.onnx")); err == nil {
			t.Fatal("killed, and yet an output")
		}
	}
	if kills == 0 {
		t.Fatal("nothing was killed")
	}
	want, err := os.ReadFile(filepath.Join(plain, "out.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(broken, "out.onnx")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after %d kills the model differs: %v", kills, err)
	}
}
