// Package child runs jobs of a program in processes of their own, as memory is measured by process: the job is JSON on
// the standard input of a process, and its result is JSON on its standard output.
//
// It must not know what the jobs are.
package child

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// An Error is the error of a job in another process.
type Error struct {
	Text string
	Code int // the exit code of the cause; 0 if the process ended without an answer
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Text }

// answer is what a process writes.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Code   int             `json:"code,omitempty"`
}

// Run starts a program, which calls Serve, and decodes the result of a job. The errors of the job are *Error.
func Run(ctx context.Context, program []string, job, result any) error {
	text, err := json.Marshal(job)
	if err != nil {
		return err
	}
	var out, complaint bytes.Buffer
	c := exec.CommandContext(ctx, program[0], program[1:]...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(text), &out, &complaint
	if err := c.Run(); err != nil {
		return ended(complaint.String(), err)
	}
	var a answer
	switch err := json.Unmarshal(out.Bytes(), &a); {
	case err != nil:
		return fmt.Errorf("%s: not an answer of a job: %w", program[0], err)
	case a.Error != "":
		return &Error{a.Error, a.Code}
	}
	return json.Unmarshal(a.Result, result)
}

// ended is the error of a process that ended without an answer, such as one that was out of memory: Go's runtime and
// most libraries print the reason first.
func ended(stderr string, err error) error {
	reason, _, _ := strings.Cut(cmp.Or(strings.TrimSpace(stderr), err.Error()), "\n")
	return &Error{Text: "the measuring process ended: " + reason}
}

// Serve reads a job from in, runs it, and writes the result, or the error with its exit code, to out.
func Serve[J, R any](ctx context.Context, in io.Reader, out io.Writer,
	run func(context.Context, J) (R, error), code func(error) int) error {
	var job J
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return err
	}
	var a answer
	result, err := run(ctx, job)
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a = answer{Error: err.Error(), Code: code(err)}
	}
	return json.NewEncoder(out).Encode(a)
}
