package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/partition"
)

// Signals end split --run with the processes of its stages and ranks. Files that it wrote are complete, and temporary
// ones are left by SIGKILL only.
func TestSignalsEndTheStages(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(filepath.Dir(conform.Fixtures(t)[0]), "transformer.onnx")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		for _, split := range []string{"--stages=3 --run=piped", "--tensor-parallel=2 --run=sequential"} {
			for _, stages := range []int{0, 2} { // processes that run when the signal is sent
				dir := t.TempDir()
				// by that name the test binary is the program
				if err := os.Symlink(exe, filepath.Join(dir, "mcompress")); err != nil {
					t.Fatal(err)
				}
				c := exec.Command(filepath.Join(dir, "mcompress"),
					append([]string{"split", model, "-q", "-o", filepath.Join(dir, "out"), "--samples", "100000"},
						strings.Fields(split)...)...)
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				children := childrenOf(c.Process.Pid, stages)
				if err := c.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				err := c.Wait()
				name := fmt.Sprintf("%v, %s, %d processes", sig, split, len(children))
				if err == nil || sig != syscall.SIGKILL && stages > 0 && c.ProcessState.ExitCode() != exitIO {
					t.Errorf("%s: %v", name, err)
				}
				for _, pid := range children {
					if !endsSoon(pid) {
						t.Errorf("%s: process %d still runs", name, pid)
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
				requireComplete(t, name, filepath.Join(dir, "out"), sig == syscall.SIGKILL || stages == 0)
			}
		}
	}
}

// childrenOf returns the processes that a process has started, once there are n.
func childrenOf(pid, n int) (pids []int) {
	for deadline := time.Now().Add(time.Minute); len(pids) < n &&
		time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		pids = nil
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, path := range lists {
			text, _ := os.ReadFile(path)
			for _, word := range strings.Fields(string(text)) {
				var child int
				if _, err := fmt.Sscan(word, &child); err == nil {
					pids = append(pids, child)
				}
			}
		}
	}
	return pids
}

// endsSoon reports whether a process ends.
func endsSoon(pid int) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") { // waits for its new parent
			return true
		}
	}
	return false
}

// requireComplete requires that a folder has all files of a manifest or none.
func requireComplete(t *testing.T, name, dir string, temporary bool) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	manifest := ""
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "s.json") {
			manifest = filepath.Join(dir, e.Name())
		}
		if strings.HasPrefix(e.Name(), ".") && !temporary {
			t.Errorf("%s: temporary files are left: %s", name, e.Name())
		}
	}
	if manifest == "" {
		return
	}
	m, err := partition.ReadManifest(manifest)
	if err == nil {
		err = partition.CompareFiles(t.Context(), m, dir, true)
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}
