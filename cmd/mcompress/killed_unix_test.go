//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/journal"
)

// TestKilledTrainingResumes kills training repeatedly, after increasing delays, and resumes it each time: the model is
// bit-identical to that of an uninterrupted run, and no partial file is left.
func TestKilledTrainingResumes(t *testing.T) {
	scratch := t.TempDir()
	train := func(dir string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, "mcompress"), "finetune", "cnn.onnx", "--data", "digits_test.npz",
			"--epochs", "2", "--dropout", "0.1",
			"--save", "state.zip", "--save-every", "1", "--resume", "-o", "out.onnx", "--report", "none",
			"-q", "--no-verify")
		c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+scratch) // a killed process leaves temporary files there
		return c
	}
	plain, broken := programFolder(t, "cnn.onnx", "digits_test.npz"), programFolder(t, "cnn.onnx", "digits_test.npz")
	if out, err := train(plain).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	kills := 0
	for delay := 100 * time.Millisecond; ; delay = delay * 5 / 4 {
		if !killedAfter(t, train(broken), delay) {
			break
		}
		kills++
		if _, err := os.Stat(filepath.Join(broken, "out.onnx")); err == nil {
			t.Fatal("killed, and yet an output")
		}
	}
	if kills == 0 {
		t.Fatal("nothing was killed")
	}
	sameFile(t, plain, broken, "out.onnx")
}

// Training with --save that gets SIGTERM ends its step and stores it: the next run continues from there, and the model
// is that of an undisturbed one.
func TestInterruptedTrainingKeepsItsSteps(t *testing.T) {
	names := []string{"cnn.onnx", "digits_test.npz"}
	plain, broken := programFolder(t, names...), programFolder(t, names...)
	train := func(dir string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, "mcompress"), "finetune", "cnn.onnx", "--data", "digits_test.npz",
			"--epochs", "50", "--lr", "0.001", "--batch", "16",
			"--save", "state.zip", "--save-every", "1000000", "--resume", "-o", "out.onnx", "--report", "none",
			"--json", "--no-verify")
		c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir)
		return c
	}
	if out, err := train(plain).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stored := 0
	for delay := 100 * time.Millisecond; ; delay = delay * 5 / 4 {
		c := train(broken)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(delay, func() { _ = c.Process.Signal(syscall.SIGTERM) })
		err := c.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		if c.ProcessState.ExitCode() < 0 {
			continue // ended before the program handles signals
		}
		if c.ProcessState.ExitCode() != exitIO {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(broken, "state.zip")); err == nil {
			stored++
		}
	}
	if stored == 0 {
		t.Fatal("no step was stored")
	}
	sameFile(t, plain, broken, "out.onnx")
}

// sameFile checks that two folders have the same file of a name.
func sameFile(t *testing.T, plain, broken, name string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(plain, name))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(broken, name)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs: %v", name, err)
	}
}

// killedAfter runs a command, which it kills after the delay, and reports whether it did. A command that ends before
// has exit code 0.
func killedAfter(t *testing.T, c *exec.Cmd, delay time.Duration) bool {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(delay, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	err := c.Wait()
	if err != nil && c.ProcessState.ExitCode() >= 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return err != nil
}

// programFolder is a folder with fixtures of these names and with the program, mcompress.
func programFolder(t *testing.T, names ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fixtures, dir := filepath.Dir(conform.Fixtures(t)[0]), t.TempDir()
	for _, name := range names {
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

// TestKilledJobsContinue kills jobs as soon as they have another result in their journal, and runs them again: the
// files are those of an undisturbed run, and the journal is removed.
func TestKilledJobsContinue(t *testing.T) {
	t.Parallel()
	const kills = 2
	names := []string{"cnn.onnx", "digits_test.npz", "transformer.onnx", "transformer_tokens.npz"}
	for _, args := range []string{
		"quantize transformer.onnx --method weight-int4 --algo gptq --data transformer_tokens.npz -o out.onnx",
		"quantize transformer.onnx --method weight-int4 --algo awq --data transformer_tokens.npz -o out.onnx",
		"prune transformer.onnx --method sparsegpt --amount 0.5 --allocate sensitivity --data transformer_tokens.npz -o out.onnx",
		"prune cnn.onnx --method wanda --amount 0.5 --data digits_test.npz --limit 64 -o out.onnx",
		"quantize cnn.onnx --auto --max-accuracy-drop 0.01 --data digits_test.npz --limit 100 -o out.onnx",
		"--json quantize cnn.onnx --sensitivity --data digits_test.npz --limit 100",
	} {
		t.Run(args, func(t *testing.T) {
			plain, broken := programFolder(t, names...), programFolder(t, names...)
			run := func(dir string) (*exec.Cmd, *bytes.Buffer) {
				c, out := exec.Command(filepath.Join(dir, "mcompress"), strings.Fields(args)...), &bytes.Buffer{}
				c.Dir, c.Stdout, c.Stderr, c.Env = dir, out, out, append(os.Environ(), "TMPDIR="+dir)
				return c, out
			}
			c, want := run(plain)
			if err := c.Run(); err != nil {
				t.Fatalf("%v: %s", err, want)
			}
			path := filepath.Join(broken, "out.onnx")
			if !strings.Contains(args, "-o out.onnx") {
				path = filepath.Join(broken, "cnn.sensitivity")
			}
			log, size := filepath.Join(journal.Folder(path), "journal"), int64(0)
			killed := 0
			for ; killed < kills; killed++ {
				if c, out := run(broken); !killedWithMore(t, c, log, &size) {
					t.Logf("ended before kill %d: %s", killed+1, out)
					break
				}
			}
			if killed == 0 {
				t.Fatal("nothing was killed")
			}
			c, got := run(broken)
			if err := c.Run(); err != nil {
				t.Fatalf("%v: %s", err, got)
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("printed\n%s, want\n%s", got, want)
			}
			if _, err := os.Stat(journal.Folder(path)); err == nil {
				t.Error("the journal is left")
			}
			if strings.Contains(args, "-o out.onnx") {
				sameFile(t, plain, broken, "out.onnx")
				sameFile(t, plain, broken, "out.report.json")
			}
		})
	}
}

// killedWithMore starts a program and kills it as soon as its journal has more than size bytes, which it updates. It
// reports false if the program ends before.
func killedWithMore(t *testing.T, c *exec.Cmd, log string, size *int64) bool {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for more := false; !more; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %v", err, c.Stderr)
			}
			return false
		case <-time.After(time.Millisecond):
			st, err := os.Stat(log)
			more = err == nil && st.Size() > *size
		}
	}
	_ = c.Process.Kill()
	if err := <-ended; err == nil {
		return false
	}
	if c.ProcessState.ExitCode() >= 0 {
		t.Fatalf("not killed: %v", c.Stderr)
	}
	*size = 0 // if it was killed after the removal of its journal
	if st, err := os.Stat(log); err == nil {
		*size = st.Size()
	}
	return true
}

// Workers of a plan that are killed at any time continue, and the result is that of one process.
func TestKilledWorkersContinue(t *testing.T) {
	const workers = 2
	plain, divided := programFolder(t, "transformer.onnx"), programFolder(t, "transformer.onnx")
	command := func(dir, args string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, "mcompress"), strings.Fields(args)...)
		c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir)
		return c
	}
	finish := func(dir, args string) {
		t.Helper()
		if out, err := command(dir, args).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
	}
	finish(plain, "quantize --method weight-int4 --data-files 2 transformer.onnx -o out/ -q")
	finish(divided, "plan -n 2 -o out -- quantize --method weight-int4 transformer.onnx")
	kills := 0
	for i := range workers {
		for delay := 10 * time.Millisecond; ; delay = delay*5/4 + time.Millisecond {
			if !killedAfter(t, command(divided, "work out -q --index "+strconv.Itoa(i)), delay) {
				break
			}
			kills++
		}
	}
	if kills == 0 {
		t.Error("nothing was killed")
	}
	finish(divided, "finalize out -q")
	for _, name := range []string{".onnx", ".onnx.data-00001-of-00002", ".onnx.data-00002-of-00002", ".report.json"} {
		sameFile(t, plain, divided, filepath.Join("out", "transformer.weight-int4"+name))
	}
}
