package metric

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Bounds of the output of an evaluator, in bytes.
const (
	maxResult  = 64 << 10
	maxMessage = 400 // of its last error message
)

// Command is the evaluator that runs a program with the paths of the reference's outputs, of the model's outputs and of
// the data as last arguments, for at most the given time. The program writes a Value as JSON to its standard output,
// and nothing else.
func Command(args []string, limit time.Duration) Evaluator {
	return func(ctx context.Context, f Files) (v Value, err error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		// A program may write without end; what is beyond the bounds is dropped as it comes.
		out, messages := &boundedBuffer{limit: maxResult}, &boundedBuffer{limit: maxResult}
		// The capacity ends with the arguments: append must not write into the caller's array, which later calls
		// use.
		c := exec.CommandContext(ctx, args[0], append(args[1:len(args):len(args)], f.Reference, f.Candidate, f.Data)...)
		// Processes outside of its group may hold its output open after it was killed.
		c.Stdout, c.Stderr, c.WaitDelay = out, messages, time.Second
		switch err := runGroup(c); {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return v, fmt.Errorf("%s: it took more than %v", args[0], limit)
		case err != nil:
			return v, fmt.Errorf("%s: %w%s", args[0], err, messages.last())
		case out.overflow:
			return v, fmt.Errorf("%s: its output has more than %d bytes", args[0], maxResult)
		}
		if v, err = parseValue(out.buffer.Bytes()); err != nil {
			return v, fmt.Errorf("%s: %w", args[0], err)
		}
		return v, nil
	}
}

// parseValue parses the output of a program.
func parseValue(text []byte) (v Value, err error) {
	var fields struct {
		Name   *string  `json:"name"`
		Value  *float64 `json:"value"`
		Higher *bool    `json:"higher_is_better"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&fields); err != nil {
		return v, fmt.Errorf("its output %.80q is not JSON of the form {\"name\": text, \"value\": number, "+
			"\"higher_is_better\": true or false}: %w", text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, errors.New("its output has more than one JSON value; write messages to standard error")
	}
	if fields.Name == nil || fields.Value == nil || fields.Higher == nil {
		return v, errors.New("its output lacks one of name, value and higher_is_better")
	}
	return Value{*fields.Name, *fields.Value, *fields.Higher}, nil
}

// A boundedBuffer buffer keeps the first bytes that are written to it.
type boundedBuffer struct {
	buffer   bytes.Buffer
	limit    int
	overflow bool
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	keep := min(len(p), b.limit-b.buffer.Len())
	b.overflow = b.overflow || keep < len(p)
	b.buffer.Write(p[:keep])
	// A short count would be an error of writing, which ends the program.
	return len(p), nil
}

// last is the last line, as the end of a message.
func (b *boundedBuffer) last() string {
	text := strings.TrimSpace(b.buffer.String())
	text = text[strings.LastIndex(text, "\n")+1:]
	if text == "" {
		return ""
	}
	return ": " + text[:min(len(text), maxMessage)]
}

// Split splits a command line at spaces. Single and double quotes keep spaces, and a backslash outside of single quotes
// keeps the next character. Nothing is expanded: there is no shell.
func Split(line string) ([]string, error) {
	var args []string
	var arg strings.Builder
	quote, started, escaped := rune(0), false, false
	for _, r := range line {
		switch {
		case escaped:
			arg.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			// Quotes and backslashes start an argument even if it remains empty.
			escaped, started = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, started = r, true
		case quote == 0 && strings.ContainsRune(" \t\r\n", r):
			if started {
				args = append(args, arg.String())
			}
			arg.Reset()
			started = false
		default:
			arg.WriteRune(r)
			started = true
		}
	}
	if started {
		args = append(args, arg.String())
	}
	switch {
	case quote != 0 || escaped:
		return nil, errors.New("unclosed quote or backslash at the end")
	case len(args) == 0 || args[0] == "":
		return nil, errors.New("it names no program")
	}
	return args, nil
}
