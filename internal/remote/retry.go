package remote

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// attempts is the number of attempts of a request.
const attempts = 8

// The time before the second attempt doubles with every other, up to maxPause.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 8 * time.Second
)

// retry repeats do while its error is transient, with exponential backoff and jitter.
func (s *settings) retry(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case !transient(err):
			return err
		case n == attempts:
			return fmt.Errorf("%d attempts failed, the last one with %w", attempts, err)
		}
		if err := s.sleep(ctx, n); err != nil {
			return err
		}
	}
}

// sleep waits before the attempt after the n-th: between half of the backoff and all of it.
func (s *settings) sleep(ctx context.Context, n int) error {
	d := min(s.pause<<(n-1), maxPause)
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
