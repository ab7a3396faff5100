package registry

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/retry"
)

// stepKey is the key of contexts of a step that is repeated as a whole.
type stepKey struct{}

// inStep returns the context of such a step: its requests are sent once. Otherwise attempts of requests within attempts
// of the step would multiply.
func inStep(ctx context.Context) context.Context { return context.WithValue(ctx, stepKey{}, true) }

func isInStep(ctx context.Context) bool { return ctx.Value(stepKey{}) != nil }

// repeat repeats a step after errors that may pass. A step within another one is done once.
func (o Options) repeat(ctx context.Context, step func(context.Context) error) error {
	if isInStep(ctx) {
		return step(ctx)
	}
	ctx = inStep(ctx)
	return retry.Do(ctx, o.backoff, isTransient, func() error { return step(ctx) })
}

// isTransfer reports whether err is of the connection, the registry or an interruption: a later pull resumes.
func isTransfer(err error) bool {
	var t *TransferError
	return errors.As(err, &t) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isTransient reports whether the same request may succeed a little later.
func isTransient(err error) bool {
	var t *TransferError
	return errors.As(err, &t) && !t.refused
}
