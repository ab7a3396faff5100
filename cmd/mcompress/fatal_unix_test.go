//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Memory that the system refuses ends the program by a signal, not with the exit code of a request that is not valid.
func TestOutOfMemoryIsNoUsageError(t *testing.T) {
	if os.Getenv("MCOMPRESS_TEST_OUT_OF_MEMORY") != "" {
		abortOnFatalErrors()
		held := make([][]byte, 0, 1<<10)
		for range cap(held) {
			held = append(held, make([]byte, 1<<45))
		}
		t.Fatal(len(held))
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOutOfMemoryIsNoUsageError$")
	c.Env = append(os.Environ(), "MCOMPRESS_TEST_OUT_OF_MEMORY=1")
	text, err := c.CombinedOutput()
	if !strings.Contains(string(text), "out of memory") {
		t.Fatalf("%v: %.500s", err, text)
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if status := ended.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGABRT || status.CoreDump() {
		t.Errorf("ended by %v", ended)
	}
}
