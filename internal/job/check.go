package job

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// errRejected stops an output from being saved under its path: a gate on verification did not hold.
var errRejected = errors.New("a gate did not hold")

// checkOutput verifies the output before it is published, and evaluates the gates that were not evaluated on the plan:
// those on the verification, and for a packed output all.
func (r *run) checkOutput(ctx context.Context, p *onnx.Plan, out *onnx.File, result []report.File) error {
	if err := r.checkWritten(ctx, p, out.Model, nil); err != nil {
		return err
	}
	verify := r.Verify != nil && r.verification == nil
	if verify {
		if err := r.verifyOutput(ctx, out); err != nil {
			return err
		}
	}
	// NaN where the source is finite rejects an output even without gates.
	lost := r.verification != nil && r.verification.Lost() != ""
	if !verify && !isPacked(r.path) || len(r.Gates) == 0 && !lost || r.path != r.Output {
		return nil
	}
	evaluated, err := r.evaluateGates(ctx, p, result)
	if err == nil && !evaluated.Passed() {
		err = errRejected
	}
	return err
}

// checkWritten checks that the weights in the output are what was written for them, those that mine reports if it
// is not nil, and notes what that finds.
func (r *run) checkWritten(ctx context.Context, p *onnx.Plan, out *ir.Model, mine func(*ir.Tensor) bool) error {
	in := report.Input{Result: report.Model{IR: out}, Rows: r.rows, Eval: r.eval, Workers: r.Workers, Mine: mine}
	if p.Size() >= resumableBytes || r.ManyProcesses {
		in.Journal = r.Journal
	}
	rows, err := report.CheckWritten(ctx, in)
	if err == nil {
		r.rows = rows
	}
	return err
}

// verifyOutput compares the output with its source, or the model that steps name for that.
func (r *run) verifyOutput(ctx context.Context, out *onnx.File) (err error) {
	with, before := *r.Verify, r.source
	if r.referenceModel != nil {
		with.teacher, before = true, r.referenceModel.file
	}
	if n := budget(r.Steps); n > 0 {
		if with, err = with.fitBudget(ctx, before, out, n); err != nil {
			return err
		}
	}
	v, err := with.compare(ctx, before, out)
	if r.verification, err = r.Verify.classify(ctx, v, err); err != nil {
		return err
	}
	r.verification.Skipped = WithoutFolders(r.verification.Skipped, out.Path, r.Input, r.Verify.Data.Path)
	return nil
}

// WithoutFolders removes the folders of the given paths from a text for reports, which name files only.
func WithoutFolders(text string, paths ...string) string {
	for _, path := range paths {
		dirs := []string{filepath.Dir(path)}
		if abs, err := filepath.Abs(path); err == nil {
			dirs = append(dirs, filepath.Dir(abs))
		}
		for _, dir := range dirs {
			if path != "" && dir != "." && dir != string(filepath.Separator) {
				text = strings.ReplaceAll(text, dir+string(filepath.Separator), "")
			}
		}
	}
	return text
}

// A ValuesError is a result that fails on samples on which the source runs since it computes other values, such as
// an index beyond an axis. That is no fault of the program, nor of the source.
type ValuesError struct{ Err error }

// Error names the node.
func (e *ValuesError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the run.
func (e *ValuesError) Unwrap() error { return e.Err }

// isValuesError reports whether what a model computes is the cause of an error of its run: an index or size, or the
// number of iterations.
func isValuesError(err error) bool {
	var values *engine.ValuesError
	var steps *engine.StepError
	return (errors.As(err, &values) || errors.As(err, &steps)) && !errors.As(err, new(*ir.Bug))
}

// classify separates errors of the output, which it returns, from reasons to skip verification, unless that is
// required: a source that cannot be run is no fault of the output, and gates that need a run do not hold then. An
// output is broken if it fails where the source runs.
func (v Verification) classify(ctx context.Context, r *verification.Result, err error) (*verification.Result, error) {
	var side *verify.SideError
	var missing *engine.Unsupported
	var refused *unrunnableError
	var more *engine.MemoryError
	switch {
	case err == nil || ctx.Err() != nil:
		return r, err
	// These come first: an error of the source excuses the output whatever its kind.
	case errors.As(err, &missing), errors.As(err, &refused), errors.As(err, &side) && side.Side == verify.First:
		if v.Required {
			return nil, fmt.Errorf("not verified: %w", err)
		}
		return &verification.Result{Skipped: err.Error()}, nil
	case errors.As(err, &side) && side.Side == verify.Second && errors.As(err, &more):
		return nil, fmt.Errorf("the source runs, the result fails: %w; --no-verify writes it anyway", err)
	case errors.As(err, &side) && side.Side == verify.Second && isValuesError(err):
		return nil, &ValuesError{fmt.Errorf("the source runs, the result fails, for an index or a size that it computes: "+
			"%w; exclude layers before it or take more bits; --no-verify writes it anyway", err)}
	case errors.As(err, &side) && side.Side == verify.Second:
		return nil, ir.Bugf("the source runs, the result fails: %w; --no-verify writes it anyway", err)
	}
	return nil, err
}
