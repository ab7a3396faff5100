package main

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/ir"
)

// A failure of the program itself has an exit code of its own, whatever it is wrapped in, and whatever it is about.
func TestExitCodeOfInternalErrors(t *testing.T) {
	bug := fmt.Errorf("m.onnx: %w", ir.Bugf("wrote 2 bytes, declared 1: %w", fs.ErrNotExist))
	for err, want := range map[error]int{
		bug:                                   exitBug,
		errors.Join(errors.New("other"), bug): exitBug,
		&fs.PathError{Err: bug}:               exitBug,
		errors.New("malformed"):               exitInput,
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
	for _, c := range []struct{ codes, want int }{{exitIO, exitIO}, {exitUsage, exitUsage}, {exitInput, exitBug},
		{exitGate, exitBug}, {exitDone, exitBug}} {
		if got := first([]int{c.codes, exitBug}); got != c.want {
			t.Errorf("models that end with %d and %d: exit code %d, want %d", c.codes, exitBug, got, c.want)
		}
	}
}

// A panic of a command is an internal error, and not the exit code of an invalid command line, which Go's runtime ends
// with.
func TestAPanicIsAnInternalError(t *testing.T) {
	app := &cli.App{Action: func(*cli.Context) error { panic("index out of range") }}
	err := runApp(t.Context(), app, []string{"mcompress"})
	if exitCode(err) != exitBug || err.Error() != "internal error: index out of range; please report it with the model" {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}
}
