package registry

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"
)

// stallTime is the time without a byte after which a transfer is interrupted, so that it can resume.
const stallTime = time.Minute

var errStalled = errors.New("the connection is stalled")

func (o Options) stallTime() time.Duration { return cmp.Or(o.stall, stallTime) }

// A watchdog cancels a context unless it is reset in time, again and again.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  time.Duration
}

func newWatchdog(ctx context.Context, after time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watchdog{ctx, cancel, time.AfterFunc(after, func() { cancel(errStalled) }), after}
}

func (d *watchdog) reset() { d.timer.Reset(d.after) }

func (d *watchdog) pause() { d.timer.Stop() }

func (d *watchdog) stop() {
	d.timer.Stop()
	d.cancel(nil)
}

// cause is err, or errStalled if that is the reason for it.
func (d *watchdog) cause(err error) error {
	if errors.Is(context.Cause(d.ctx), errStalled) {
		return errStalled
	}
	return err
}

// A watchedBody is the body of a response.
type watchedBody struct {
	io.ReadCloser
	watch *watchdog
}

// Read resets the watchdog.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, b.watch.cause(err)
	}
	b.watch.reset()
	return n, err
}

// Close ends the watch.
func (b *watchedBody) Close() error {
	b.watch.stop()
	return b.ReadCloser.Close()
}
