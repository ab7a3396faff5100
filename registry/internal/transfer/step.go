package transfer

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
)

// parallel is the default number of files that are transferred at a time.
const parallel = 4

// Each calls do for every item, limit at a time, 0 for four. The first error ends the others.
func Each[T any](ctx context.Context, limit int, items []T, do func(context.Context, T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(limit, parallel))
	for _, x := range items {
		g.Go(func() error { return do(ctx, x) })
	}
	return g.Wait()
}

// stepKey is the key of contexts of a step that is repeated as a whole.
type stepKey struct{}

// InStep returns the context of such a step: its requests are sent once. Otherwise attempts of requests within attempts
// of the step would multiply.
func InStep(ctx context.Context) context.Context { return context.WithValue(ctx, stepKey{}, true) }

// IsInStep reports whether a context is that of such a step.
func IsInStep(ctx context.Context) bool { return ctx.Value(stepKey{}) != nil }
