// Package retry decides whether a failed request is sent again, and when: it has the table of transient statuses and
// errors, and the waits between attempts. It sends nothing and knows no protocol above HTTP: the caller repeats a whole
// step, such as a request with the reading of its response, and only one that may be repeated.
package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Attempts is the number of attempts of a step without progress between them: with the waits below they take at least
// 12 s and at most 24 s, in which a server restarts or a bucket gets more partitions.
const Attempts = 8

// The wait before the second attempt is First, unless the caller has another; it doubles with every attempt, up to
// maxWait.
const (
	First   = 250 * time.Millisecond
	maxWait = 8 * time.Second
)

// maxRequested limits the wait that a server requests: a wrong one, such as a date in the next year, must not stop a
// run.
const maxRequested = 5 * time.Minute

// Status reports whether the same request may have another response later. 501 and 505 state what the server does not
// support at any time.
func Status(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return code >= http.StatusInternalServerError
}

// Unanswered reports whether a request that ended in err, without a response or within it, may succeed later: after a
// timeout, a reset, the end of a connection, a server that does not listen yet. A name that does not exist, and a
// server that does not speak TLS or has another certificate, remain so.
func Unanswered(err error) bool {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.As(err, &record),
		errors.As(err, &certificate),
		errors.As(err, &dns) && dns.IsNotFound,
		errors.Is(err, context.Canceled):
		return false
	}
	return true
}

// After is the wait that a response requests (Retry-After; RFC 9110, section 10.2.3): seconds, or a date, which is
// compared with the server's clock, as that of this computer may differ. 0 if it requests none.
func After(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if n, err := strconv.Atoi(value); err == nil {
		// Limited before it is multiplied: a large number of seconds overflows a Duration.
		return time.Duration(min(max(n, 0), int(maxRequested/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRequested)
}

// A delayed error is that of a response which requests a wait.
type delayed struct {
	error
	wait time.Duration
}

func (e *delayed) Unwrap() error { return e.error }

// Delay returns err, before whose repetition the server requests a wait: Do and Series wait at least as long.
func Delay(err error, wait time.Duration) error {
	if err == nil || wait == 0 {
		return err
	}
	return &delayed{err, wait}
}

// Requested is the wait that the server of err requests; 0 for none.
func Requested(err error) time.Duration {
	var e *delayed
	if errors.As(err, &e) {
		return e.wait
	}
	return 0
}

// A Series counts the attempts of a step.
type Series struct {
	first  time.Duration
	failed int
}

// NewSeries returns a series whose second attempt is after the wait first, or First if that is 0.
func NewSeries(first time.Duration) *Series {
	if first == 0 {
		first = First
	}
	return &Series{first: first}
}

// Progress begins the count anew: a transfer of any size ends only if its attempts get no further.
func (s *Series) Progress() { s.failed = 0 }

// Wait waits before the attempt after one that ended in err, and reports whether there is one: there is none after
// Attempts of them, or the end of ctx.
func (s *Series) Wait(ctx context.Context, err error) bool {
	if s.failed++; s.failed >= Attempts {
		return false
	}
	return Sleep(ctx, max(Backoff(s.first, s.failed-1), Requested(err))) == nil
}

// Backoff is the wait before the attempt that follows n others after the first one: between half of first·2ⁿ, which is
// at most maxWait, and all of it. Without the jitter, clients that a server refused together would all return together.
func Backoff(first time.Duration, n int) time.Duration {
	d := min(first<<n, maxWait)
	// At least half, so that a server that is restarting is not asked again at once.
	return d/2 + rand.N(d/2+1)
}

// Do repeats step while its error is transient, and returns the last error. If ctx ends, it returns the cause.
func Do(ctx context.Context, first time.Duration, transient func(error) bool, step func() error) error {
	for s := NewSeries(first); ; {
		err := step()
		// After the end of ctx the error is that of the step, which knows better what was interrupted.
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		if !s.Wait(ctx, err) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
}

// Sleep waits, and returns the cause if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
