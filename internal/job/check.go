package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/onnx"
)

// errRejected keeps an output from getting its name: a gate on running it did not hold.
var errRejected = errors.New("a gate did not hold")

// check runs the output beside its source before it gets its name, and judges the gates on that.
// An error keeps it from being written.
func (r *run) check(ctx context.Context, p *onnx.Plan, out *onnx.File) error {
	err := r.Verify.Backend.named(out, func(out *onnx.File) (err error) {
		r.verified, err = r.Verify.compare(ctx, r.source, out)
		return err
	})
	if r.verified, err = verdict(ctx, r.verified, err); err != nil {
		return err
	}
	judged, err := r.judge(ctx, p)
	if err == nil && !judged.Passed() && r.path == r.Output {
		err = errRejected
	}
	return err
}

// verdict says which errors of running are about the output. What the engine lacks is not, nor is a
// source that does not run on what was made up for it; what the source does and the output does not is.
func verdict(ctx context.Context, v *verify.Result, err error) (*verify.Result, error) {
	var side *verify.SideError
	var missing *engine.Unsupported
	var refused *refusal
	switch {
	case err == nil || ctx.Err() != nil:
		return v, err
	case errors.As(err, &missing), errors.As(err, &refused):
		return &verify.Result{Skipped: err.Error()}, nil
	case errors.As(err, &side) && side.Side == verify.Second:
		return nil, fmt.Errorf("the result does not run as the source does: %w; --no-verify writes it all the same", err)
	}
	return nil, err
}
