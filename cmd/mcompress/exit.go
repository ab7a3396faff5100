package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

// The exit codes. Scripts and CI systems branch on them, so they are documented in --help and docs/guide.
const (
	exitDone  = mcompress.ExitDone
	exitIO    = mcompress.ExitIO
	exitUsage = mcompress.ExitUsage
	exitGate  = mcompress.ExitGate
	exitInput = mcompress.ExitInput
	exitBug   = mcompress.ExitBug
)

// precedence orders the exit codes of several models: the first one that some model has is the program's.
var precedence = []int{exitIO, exitUsage, exitBug, exitInput, exitGate, exitDone}

// A usageError is an invalid command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// An exit ends the program with a code after everything has been printed.
type exit struct{ code int }

func (e exit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// finish prints err in one line and returns the exit code.
func finish(ctx context.Context, stderr io.Writer, err error) int {
	var printed exit
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &printed):
		return printed.code
	// After a signal, errors are its consequences, such as those of processes and connections that it ended.
	case ctx.Err() != nil:
		printError(stderr, errors.New("interrupted"))
		return exitIO
	}
	printError(stderr, err)
	return exitCode(err)
}

// exitCode is that of the library, but for errors of the command line.
func exitCode(err error) int {
	if isA[*usageError](err) || isA[cli.ExitCoder](err) { // cli's own: help on an unknown topic
		return exitUsage
	}
	return mcompress.ExitCode(err)
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// first returns the exit code of precedence among codes.
func first(codes []int) int {
	for _, code := range precedence {
		for _, c := range codes {
			if c == code {
				return c
			}
		}
	}
	return exitDone
}

func printError(stderr io.Writer, err error) {
	fmt.Fprintln(stderr, "mcompress: "+strings.ReplaceAll(mcli.Shown(inFlags(err).Error()), "\n", "; "))
}

// withCommand prefixes an error with the name of a command.
func withCommand(command string, err error) error { return fmt.Errorf("%s: %w", command, inFlags(err)) }
