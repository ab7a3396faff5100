package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/mcompress/mcompress/report/verification"
)

// A run is a command that ended.
type run struct {
	code           int
	stdout, stderr string
	seconds        float64
	finding        string // empty if it behaves
}

// crashes are texts of failures inside the program.
var crashes = []string{"panic:", "goroutine ", "fatal error:", "runtime error", "internal error"}

// start runs the program under the limits of time and memory.
func (s *sweep) start(ctx context.Context, dir string, args ...string) run {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	shell := fmt.Sprintf(`ulimit -v %d && exec "$@"`, s.memory/1024)
	cmd := exec.CommandContext(limited, "sh", append([]string{"-c", shell, "sh", s.program}, args...)...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	r := run{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(),
		seconds: math.Round(100*time.Since(began).Seconds()) / 100}
	switch text := r.stdout + r.stderr; {
	case limited.Err() != nil:
		r.finding = fmt.Sprintf("no end within %v", s.limit)
	case err != nil && !errors.As(err, new(*exec.ExitError)):
		r.finding = err.Error()
	case r.code < 0 || r.code > 4:
		r.finding = fmt.Sprintf("exit code %d", r.code)
	case slices.ContainsFunc(crashes, func(crash string) bool { return strings.Contains(text, crash) }):
		r.finding = "crash"
	case r.code != 0:
		r.finding = r.refusal()
	}
	return r
}

// names are texts of errors that name what is unsupported: a value or an operator, or the code of a reason.
var names = []string{`"`, "not supported", "no trainable weights", "no-repeated-layers", "can be partitioned into"}

// refusal describes what is wrong with an exit code other than 0: a model that cannot be compressed is unsupported, by
// a name.
func (r run) refusal() string {
	switch {
	case r.code != 4:
		return fmt.Sprintf("exit code %d", r.code)
	case !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(r.message(), name) }):
		return "the error does not name what is unsupported"
	}
	return ""
}

// message is the error, the last line on stderr, or of the results if there is none.
func (r run) message() string {
	lines := strings.Split(strings.TrimSpace(cmp.Or(r.stderr, r.stdout)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// lowest is the lowest SQNR of the outputs in verify's JSON, infinite where they are equal or no floats.
func (r run) lowest() (float64, error) {
	var result struct{ Verification verification.Result }
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		return 0, err
	}
	return lowest(&result.Verification), nil
}
