package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// get requests the body of a URL with attempts, and returns the number of requests and the time that they took.
func get(ctx context.Context, t *testing.T,
	fault func(n int, w http.ResponseWriter) bool) (body string, requests int, took time.Duration, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; !fault(requests, w) {
			fmt.Fprint(w, "content")
		}
	}))
	defer server.Close()
	transient := func(err error) bool {
		var status statusError
		if errors.As(err, &status) {
			return Status(int(status))
		}
		return Unanswered(err)
	}
	began := time.Now()
	err = Do(ctx, time.Millisecond, transient, func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return Delay(statusError(resp.StatusCode), After(resp))
		}
		b, err := io.ReadAll(resp.Body)
		body = string(b)
		return err
	})
	return body, requests, time.Since(began), err
}

type statusError int

func (e statusError) Error() string { return fmt.Sprint("status ", int(e)) }

// Faults of a server that pass: the content is that of the attempt without one, after the wait that the server
// requests.
func TestFaults(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "7")
		fmt.Fprint(w, "con")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	date := time.Now().UTC().Truncate(time.Second)
	for name, c := range map[string]struct {
		fault func(w http.ResponseWriter)
		times int
		least time.Duration
	}{
		"429 with seconds": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 1, time.Second},
		"429 with a date": {func(w http.ResponseWriter) {
			w.Header().Set("Date", date.Add(-time.Hour).Format(http.TimeFormat)) // the server's clock is an hour late
			w.Header().Set("Retry-After", date.Add(-time.Hour+time.Second).Format(http.TimeFormat))
			w.WriteHeader(http.StatusTooManyRequests)
		}, 1, time.Second},
		"503":               {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, Attempts - 1, 0},
		"cut in the middle": {cut, 3, 0},
		"no response":       {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, n, took, err := get(t.Context(), t, func(n int, w http.ResponseWriter) bool {
				if n > c.times {
					return false
				}
				c.fault(w)
				return true
			})
			if err != nil || body != "content" || n != c.times+1 || took < c.least || took > c.least+time.Second/2 {
				t.Errorf("%q after %d requests in %v, %v", body, n, took, err)
			}
		})
	}
}

// What stays is an error: after Attempts if it might pass, else after one.
func TestLastError(t *testing.T) {
	for status, want := range map[int]int{503: Attempts, 429: Attempts, 404: 1, 403: 1, 501: 1} {
		_, n, _, err := get(t.Context(), t, func(_ int, w http.ResponseWriter) bool {
			w.WriteHeader(status)
			return true
		})
		if n != want || !errors.Is(err, statusError(status)) {
			t.Errorf("status %d: %d requests, %v", status, n, err)
		}
	}
}

// A cancel ends the wait that a server requests.
func TestCancelInTheWait(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("ended")
	_, n, took, err := get(ctx, t, func(_ int, w http.ResponseWriter) bool {
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusServiceUnavailable)
		time.AfterFunc(50*time.Millisecond, func() { cancel(ended) })
		return true
	})
	if !errors.Is(err, ended) || n != 1 || took > 10*time.Second {
		t.Errorf("%d requests in %v, %v", n, took, err)
	}
	if err := Sleep(ctx, time.Hour); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
}

func TestStatus(t *testing.T) {
	var got []string
	for code := range 1000 {
		if Status(code) && code <= 511 {
			got = append(got, fmt.Sprint(code))
		}
	}
	if want := "408 425 429 500 502 503 504 506 507 508 509 510 511"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestUnanswered(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{io.ErrUnexpectedEOF, true}, {syscall.ECONNRESET, true}, {context.DeadlineExceeded, true},
		{&net.DNSError{Err: "no network"}, true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{&net.DNSError{IsNotFound: true}, false}, {&tls.CertificateVerificationError{}, false},
		{tls.RecordHeaderError{}, false}, {context.Canceled, false},
	} {
		if got := Unanswered(fmt.Errorf("get: %w", c.err)); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

func TestAfter(t *testing.T) {
	const date = "Wed, 21 Oct 2026 07:28:00 GMT"
	for _, c := range []struct {
		header, date string
		want         time.Duration
	}{
		{"", "", 0}, {"7", "", 7 * time.Second}, {"-1", "", 0}, {"100000", "", maxRequested},
		{fmt.Sprint(math.MaxInt), "", maxRequested},
		{"Wed, 21 Oct 2026 07:28:30 GMT", date, 30 * time.Second}, {"Wed, 21 Oct 2026 07:27:30 GMT", date, 0},
		{"Wed, 21 Oct 2027 07:28:30 GMT", date, maxRequested}, {"Wed, 21 Oct 2026 07:28:30 GMT", "", 0}, {"soon", "", 0},
	} {
		got := After(&http.Response{Header: http.Header{"Retry-After": {c.header}, "Date": {c.date}}})
		if got != c.want {
			t.Errorf("%q: got %v, want %v", c.header, got, c.want)
		}
	}
	err := fmt.Errorf("first: %w", Delay(io.EOF, time.Minute))
	if Requested(err) != time.Minute || !errors.Is(err, io.EOF) || Requested(io.EOF) != 0 ||
		Delay(nil, time.Minute) != nil {
		t.Errorf("%v: %v", err, Requested(err))
	}
}

// The wait before the attempt n is between half of first·2ⁿ and all of it, up to a maximum.
func TestBackoff(t *testing.T) {
	for n, whole := range []time.Duration{1e9, 2e9, 4e9, 8e9, maxWait, maxWait} {
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			d := Backoff(time.Second, n)
			least, most = min(least, d), max(most, d)
		}
		if least < whole/2 || least > whole*11/20 || most > whole || most < whole*19/20 {
			t.Errorf("attempt %d: between %v and %v", n, least, most)
		}
	}
}

// Progress begins the count of attempts anew.
func TestSeries(t *testing.T) {
	s := NewSeries(1)
	waits := func() (n int) {
		for ; s.Wait(t.Context(), io.EOF) && n < 100; n++ {
		}
		return n
	}
	if n := waits(); n != Attempts-1 {
		t.Errorf("%d waits", n)
	}
	if s.Progress(); waits() != Attempts-1 {
		t.Error("progress does not begin anew")
	}
	if s := NewSeries(0); s.first != First {
		t.Errorf("first wait %v", s.first)
	}
}
