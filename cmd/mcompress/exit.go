package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/tune"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // bad input, I/O
	exitUsage  = 2
	exitGate   = 3 // a gate did not hold
)

// A usageError is a command line that says nothing sensible.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// An exit ends the program with a code when all there is to say has been said.
type exit struct{ code int }

func (e exit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// finish prints err in one line and gives the exit code.
func finish(ctx context.Context, stderr io.Writer, err error) int {
	var done exit
	var usage *usageError
	var topic cli.ExitCoder // cli's own, for help on what there is not
	var beyond *tune.Unreachable
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &done):
		return done.code
	case errors.As(err, &usage), errors.As(err, &topic):
		say(stderr, err)
		return exitUsage
	case errors.As(err, &beyond):
		say(stderr, err)
		return exitGate
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	}
	say(stderr, err)
	return exitFailed
}

func say(stderr io.Writer, err error) {
	fmt.Fprintln(stderr, "mcompress: "+strings.ReplaceAll(err.Error(), "\n", "; "))
}
