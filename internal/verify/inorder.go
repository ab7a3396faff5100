package verify

import (
	"context"
	"iter"
	"sync"

	"github.com/mcompress/mcompress/internal/dataset"
)

// InOrder processes batches concurrently: start is called for one after the other and returns a run, up to n runs
// are concurrent, and add receives their results in the order of the batches. With n up to 1 a run has ended before
// the next batch is read.
func InOrder[T any](ctx context.Context, n int, batches iter.Seq2[*dataset.Batch, error],
	start func(*dataset.Batch) (func(context.Context) (T, error), error), add func(*dataset.Batch, T) error) error {
	type outcome struct {
		batch *dataset.Batch
		value T
		err   error
	}
	var queue []chan outcome
	next := func() error {
		o := <-queue[0]
		if queue = queue[1:]; o.err != nil {
			return o.err
		}
		return add(o.batch, o.value)
	}
	var running sync.WaitGroup
	// Deferred before cancel, and so called after it: no run uses a model or a batch after the return.
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for b, err := range batches {
		if err != nil {
			return err
		}
		run, err := start(b)
		if err != nil {
			return err
		}
		// Of one outcome, so that a run ends although an error before it leaves the queue unread.
		done := make(chan outcome, 1)
		queue = append(queue, done)
		running.Go(func() {
			value, err := run(ctx)
			done <- outcome{b, value, err}
		})
		if len(queue) >= max(1, n) {
			if err := next(); err != nil {
				return err
			}
		}
	}
	for len(queue) > 0 {
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}
