package mcompress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/child"
	"github.com/mcompress/mcompress/internal/folder"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
)

// The exit codes of the program, which say what can be done about an error.
const (
	ExitDone  = 0
	ExitIO    = 1  // reading or writing failed, or the run was interrupted: a retry may help
	ExitUsage = 2  // the request is not valid
	ExitGate  = 3  // a gate did not hold
	ExitInput = 4  // the input is malformed or unsupported: a retry does not help
	ExitBug   = 70 // the program itself failed, as EX_SOFTWARE of sysexits.h
)

// A RejectedError is a result that a gate rejects. It is saved as NAME.rejected.onnx, with its reports.
type RejectedError struct{ Result *Result }

// Error names the gates that did not hold.
func (e *RejectedError) Error() string {
	text := e.Result.Model + ": rejected"
	for _, g := range e.Result.Report.Gates {
		if !g.Held && !g.Open {
			text += ": " + g.Name + " " + g.Failure()
		}
	}
	return text
}

// A PushError is a model that is not pushed, as a gate of its report did not hold.
type PushError struct{ err error }

func (e *PushError) Error() string { return e.err.Error() }

// A ConclusionError is what failed after all models were done, the index of a list or a push: the results are complete,
// and in the outcomes.
type ConclusionError struct{ err error }

func (e *ConclusionError) Error() string { return e.err.Error() }

// Unwrap returns the cause, which decides on the exit code.
func (e *ConclusionError) Unwrap() error { return e.err }

// A WaitError is the end of a wait for other processes of a plan.
type WaitError struct{ err error }

func (e *WaitError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.err }

// ExitCode classifies an error by its cause, as the program does:
//
//	ExitIO     context.Canceled, context.DeadlineExceeded, *fs.PathError, syscall.Errno, *registry.TransferError,
//	           *LibraryError, *WaitError, *onnx.ChangedError
//	ExitUsage  *FieldError, *pass.OptionError, *registry.ReferenceError, *registry.ConflictError
//	ExitGate   *RejectedError, *PushError, *BudgetError, a search that finds nothing within the gates, a result that
//	           cannot be reproduced
//	ExitBug    *ir.Bug
//	ExitInput  *onnx.FormatError, and all others: an error without a cause outside of the program follows from the
//	           input alone
func ExitCode(err error) int {
	var other *child.Error
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &other):
		return max(ExitIO, other.Code) // 0 of a process that ended by itself
	case isA[*ir.Bug](err):
		return ExitBug
	case isA[*FieldError](err), isA[*pass.OptionError](err), isA[*atomicfile.TargetError](err),
		isA[*atomicfile.ForeignError](err), isA[*folder.LinkError](err),
		isA[*registry.ReferenceError](err), isA[*registry.ConflictError](err), isA[*remote.PathError](err):
		return ExitUsage
	case isA[*RejectedError](err), isA[*PushError](err), isA[*BudgetError](err), isA[*tune.Unreachable](err),
		isA[*job.NotReproducibleError](err), isA[*job.ValuesError](err):
		return ExitGate
	case isA[syscall.Errno](err), isA[*fs.PathError](err), isA[*exec.Error](err), isA[*exec.ExitError](err),
		isA[*LibraryError](err), isA[*onnx.ChangedError](err),
		isA[*WaitError](err), isA[*atomicfile.BusyError](err), isA[*registry.TransferError](err), isA[*remote.Error](err),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ExitIO
	}
	return ExitInput
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// repeatable reports whether repeating a run that ended with this error may help. One that an interrupt reached after
// its end has none.
func repeatable(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || ExitCode(err) == ExitIO)
}

// withModel prefixes an error with the name of its model.
func withModel(model string, err error) error { return fmt.Errorf("%s: %w", model, err) }

// ensureModel prefixes an error with the path of its model, unless it begins with it.
func ensureModel(path string, err error) error {
	if strings.HasPrefix(err.Error(), path+": ") {
		return err
	}
	return withModel(path, err)
}
