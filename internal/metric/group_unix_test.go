//go:build unix

package metric

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Programs that an evaluator started end with it: after its time limit, when the run is canceled, and after it has
// written a value.
func TestProgramsOfAnEvaluatorEnd(t *testing.T) {
	for name, c := range map[string]struct {
		last  string
		limit time.Duration
		stop  time.Duration
	}{
		"timeout":  {"wait", 500 * time.Millisecond, time.Minute},
		"canceled": {"wait", time.Minute, 500 * time.Millisecond},
		"done":     {`echo '{"name": "a", "value": 1, "higher_is_better": true}'`, time.Minute, time.Minute},
		"failed":   {"exit 1", time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "evaluator")
			// Without the pipe of its standard output, which the run would wait for.
			text := "#!/bin/sh\nsleep 600 >" + dir + "/null 2>&1 &\necho $! >" + dir + "/pid\n" + c.last + "\n"
			if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), c.stop)
			defer cancel()
			if _, err := Command([]string{program}, c.limit)(ctx, Files{}); (err == nil) != (name == "done") {
				t.Errorf("error %v", err)
			}
			pid, err := os.ReadFile(filepath.Join(dir, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				if !runs(n) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			_ = syscall.Kill(n, syscall.SIGKILL)
			t.Error("a program that the evaluator started is still running")
		})
	}
}

// runs reports whether a process exists. One that has ended and that nobody waits for, as in a container without init,
// does not run.
func runs(pid int) bool {
	if text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		_, rest, _ := strings.Cut(string(text), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}
