package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// A testCase is a mutated model and a command.
type testCase struct {
	number int
	dir    string
	random *rand.Rand
	always bool // properties that cost more runs hold in each case, not in a sample

	args    []string
	program string          // that runs the command; empty for that of the fuzzer
	method  *pass.Method    // of the command, if it compresses
	words   []string        // options of the method: name=value
	initial map[string]bool // files before the command
	code    int
	output  string // of the command
	finding string // empty if the command behaves

	took      time.Duration // by the clock
	interrupt time.Duration // after which the run gets SIGINT; 0 for never

	label     string   // kind of command, for statistics; empty without
	operators []string // of the model, likewise
}

func (c *testCase) model() string { return filepath.Join(c.dir, "m.onnx") }
func (c *testCase) out() string   { return filepath.Join(c.dir, "out.onnx") }

// make writes the model and chooses the command.
func (c *testCase) make(ctx context.Context, models []string) error {
	source := models[c.random.IntN(len(models))]
	if err := c.mutateGraph(ctx, source); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// a model that cannot be read or written is mutated as bytes
		if err := copyFile(source, c.model()); err != nil {
			return err
		}
	}
	if c.random.IntN(8) == 0 {
		if err := c.mutateBytes(); err != nil {
			return err
		}
	}
	c.args = c.command()
	c.initial = c.entries()
	return nil
}

// entries are the names of the files of the case.
func (c *testCase) entries() map[string]bool {
	names := map[string]bool{}
	list, _ := os.ReadDir(c.dir) // a folder that cannot be read is empty, and the command fails
	for _, e := range list {
		names[e.Name()] = true
	}
	return names
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// waits is the most times that a run may take the limit of processor time, where others use the processors, or all of
// its threads wait.
const waits = 10

// limit is that of the processor time of the command. A search tries dozens of candidates, and the time of those that
// factor Hessians grows with the cube of a layer's inputs.
func (c *testCase) limit(f *fuzzer) time.Duration {
	if slices.Contains(c.args, "--auto") {
		return 10 * f.limit
	}
	return f.limit
}

// lateness is the most time between an interrupt and the end of a run: what runs then is a fraction of a second, on
// processors that others use.
const lateness = 30 * time.Second

// wait runs cmd, and returns how long after its interrupt it has ended.
func (c *testCase) wait(cmd *exec.Cmd) (late time.Duration, err error) {
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if c.interrupt > 0 {
		// an error says that it has ended
		timer := time.AfterFunc(c.interrupt, func() { _ = cmd.Process.Signal(os.Interrupt) })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if c.took = time.Since(start); c.interrupt > 0 {
		late = c.took - c.interrupt
	}
	return late, err
}

// run runs the command under the limits and checks the files that it leaves.
func (c *testCase) run(ctx context.Context, f *fuzzer) {
	limit := c.limit(f)
	limited, cancel := context.WithTimeout(ctx, waits*limit)
	defer cancel()
	shell := fmt.Sprintf(`ulimit -v %d && ulimit -t %d && exec "$@"`, f.memory/1024, int(limit.Seconds()))
	cmd := exec.CommandContext(limited, "sh", append([]string{"-c", shell, "sh", cmp.Or(c.program, f.program)},
		c.args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "NO_COLOR=1")
	if f.cover {
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+f.coverDir())
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	late, err := c.wait(cmd)
	c.output = out.String()
	c.code = cmd.ProcessState.ExitCode()
	if ctx.Err() != nil {
		return
	}
	switch {
	case late > lateness:
		c.finding = fmt.Sprintf("no end within %v after an interrupt", lateness)
	case limited.Err() != nil:
		c.finding = fmt.Sprintf("no end within %v", waits*limit)
	case c.code < 0 && cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime() >= limit-time.Second:
		c.finding = fmt.Sprintf("no end within %v of processor time", limit)
	case c.code < 0 && c.interrupt > 0: // it came before the program handles signals
	case err != nil && !errors.As(err, new(*exec.ExitError)):
		c.finding = err.Error()
	default:
		c.finding = c.check()
	}
}

// crashes are texts of failures inside the program.
var crashes = []string{"panic:", "goroutine ", "fatal error:", "runtime error", "internal error"}

// check describes what is wrong with a run that ended; empty if nothing is.
func (c *testCase) check() string {
	if c.code == 70 {
		return "an internal error: " + lastLine(c.output)
	}
	if c.code < 0 || c.code > 4 {
		return fmt.Sprintf("exit code %d", c.code)
	}
	for _, text := range crashes {
		if strings.Contains(c.output, text) {
			return fmt.Sprintf("the output has %q", text)
		}
	}
	if i := strings.IndexFunc(c.output, isControl); i >= 0 {
		return fmt.Sprintf("the output has the control character %q", c.output[i])
	}
	if c.code != 0 && strings.TrimSpace(c.output) == "" {
		return "an error without a message"
	}
	return c.checkFiles()
}

// isControl reports characters that act on a terminal.
func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// checkFiles looks for outputs of failed runs, temporary files, and outputs that cannot be opened.
func (c *testCase) checkFiles() string {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		if c.code == 1 && e.Name() == filepath.Base(journal.Folder(c.out())) {
			continue // for the next run
		}
		if c.initial[e.Name()] {
			continue
		}
		if c.code == 1 || c.code == 4 || c.code == 70 {
			return "a failed run left " + e.Name()
		}
		if strings.Contains(e.Name(), ".part") || strings.HasPrefix(e.Name(), ".") {
			return "a temporary file is left: " + e.Name()
		}
	}
	if _, err := os.Stat(c.out()); c.code != 0 || err != nil {
		return ""
	}
	file, err := onnx.Open(c.out())
	if err != nil {
		return "the output cannot be opened: " + err.Error()
	}
	defer file.Close()
	if err := file.Model.Verify(); err != nil {
		return "the output is not valid: " + err.Error()
	}
	return ""
}
