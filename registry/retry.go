package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// attempts is the number of attempts of a request or transfer without progress between them.
const attempts = 6

// firstWait is the time before the second attempt, which doubles with every other.
const firstWait = 500 * time.Millisecond

// A retries counts attempts.
type retries struct {
	n     int
	first time.Duration
}

func (o Options) retries() *retries { return &retries{first: o.firstWait()} }

func (o Options) firstWait() time.Duration {
	if o.backoff > 0 {
		return o.backoff
	}
	return firstWait
}

// reset starts to count anew, after progress.
func (r *retries) reset() { r.n = 0 }

// wait waits before another attempt: exponential backoff with jitter. It is an error if there is none.
func (r *retries) wait(ctx context.Context) error {
	if r.n++; r.n >= attempts {
		return errors.New("too many attempts")
	}
	return sleep(ctx, backoff(r.first, r.n-1))
}

// backoff is the time before the attempt n, between 75 and 125 % of first·2ⁿ.
func backoff(first time.Duration, n int) time.Duration {
	d := first << n
	return d*3/4 + rand.N(d/2+1)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
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
