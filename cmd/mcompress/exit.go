package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
)

// The exit codes. Scripts and CI systems branch on them, so they are documented in --help and docs/guide.
const (
	exitDone  = 0
	exitIO    = 1 // reading or writing failed, or the run was interrupted: a retry may help
	exitUsage = 2
	exitGate  = 3
	exitInput = 4  // the input is malformed or unsupported: a retry does not help
	exitBug   = 70 // the program itself failed, as EX_SOFTWARE of sysexits.h
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

// A childError is the error of a process of this program, with its exit code.
type childError struct {
	text string
	code int
}

func (e *childError) Error() string { return e.text }

// A libraryError is ONNX Runtime's library missing or not usable.
type libraryError struct{ err error }

func (e *libraryError) Error() string { return e.err.Error() }
func (e *libraryError) Unwrap() error { return e.err }

// A retryError is the end of a wait for other processes.
type retryError struct{ err error }

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// A gateError is a gate that did not hold before there was a result.
type gateError struct{ err error }

func (e *gateError) Error() string { return e.err.Error() }
func (e *gateError) Unwrap() error { return e.err }

// finish prints err in one line and returns the exit code.
func finish(ctx context.Context, stderr io.Writer, err error) int {
	var printed exit
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &printed):
		return printed.code
	case ctx.Err() != nil:
		printError(stderr, errors.New("interrupted"))
		return exitIO
	}
	printError(stderr, err)
	return exitCode(err)
}

// exitCode classifies err by its cause. An error without a cause outside of the program follows from the input alone.
func exitCode(err error) int {
	var child *childError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &child):
		return child.code
	case isA[*ir.Bug](err):
		return exitBug
	case isA[*usageError](err), isA[*pass.OptionError](err), isA[*atomicfile.TargetError](err),
		isA[*registry.ReferenceError](err), isA[*registry.ConflictError](err), isA[*remote.PathError](err), isA[cli.ExitCoder](err): // cli's own: help on an unknown topic
		return exitUsage
	case isA[*gateError](err), isA[*tune.Unreachable](err), isA[*job.NotReproducibleError](err), isA[*job.ValuesError](err):
		return exitGate
	case isA[syscall.Errno](err), isA[*fs.PathError](err), isA[*exec.Error](err), isA[*exec.ExitError](err), isA[*libraryError](err), isA[*retryError](err), isA[*atomicfile.BusyError](err), isA[*registry.TransferError](err), isA[*remote.Error](err),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return exitIO
	}
	return exitInput
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
	fmt.Fprintln(stderr, "mcompress: "+strings.ReplaceAll(remote.Shown(err.Error()), "\n", "; "))
}
