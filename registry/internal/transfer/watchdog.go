package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"
)

// stallTime is the time without a byte after which a transfer is interrupted, so that it can resume.
const stallTime = time.Minute

// ErrStalled is the cause of a context that a watchdog ended.
var ErrStalled = errors.New("the connection is stalled")

// A Watchdog cancels a context unless it is reset in time, again and again.
type Watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  time.Duration
}

// NewWatchdog returns a context that ends after a time without a reset; 0 for a minute.
func NewWatchdog(ctx context.Context, after time.Duration) (context.Context, *Watchdog) {
	after = cmp.Or(after, stallTime)
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &Watchdog{ctx, cancel, time.AfterFunc(after, func() { cancel(ErrStalled) }), after}
}

// Reset begins the time anew.
func (d *Watchdog) Reset() { d.timer.Reset(d.after) }

// Pause lets the time rest until the next reset.
func (d *Watchdog) Pause() { d.timer.Stop() }

// Stop ends the context.
func (d *Watchdog) Stop() {
	d.timer.Stop()
	d.cancel(nil)
}

// Cause is err, or ErrStalled if that is the reason for it.
func (d *Watchdog) Cause(err error) error {
	if errors.Is(context.Cause(d.ctx), ErrStalled) {
		return ErrStalled
	}
	return err
}

// A body is the body of a response.
type body struct {
	io.ReadCloser
	watch *Watchdog
}

// Read resets the watchdog.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, b.watch.Cause(err)
	}
	b.watch.Reset()
	return n, err
}

// Close ends the watch.
func (b *body) Close() error {
	b.watch.Stop()
	return b.ReadCloser.Close()
}
