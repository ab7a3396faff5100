package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcompress/mcompress/internal/retry"
)

// A watchdog ends what does not reset it in time, rests while it is paused, and names the cause.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, d := NewWatchdog(t.Context(), time.Minute)
		for range 5 {
			time.Sleep(50 * time.Second)
			d.Reset()
		}
		if err := ctx.Err(); err != nil {
			t.Fatalf("ended although it was reset in time: %v", err)
		}
		d.Pause()
		time.Sleep(time.Hour)
		if err := ctx.Err(); err != nil {
			t.Fatalf("ended while it was paused: %v", err)
		}
		if err := d.Cause(io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cause %v", err)
		}
		d.Reset()
		time.Sleep(time.Minute + time.Second)
		if !errors.Is(context.Cause(ctx), ErrStalled) || !errors.Is(d.Cause(io.ErrUnexpectedEOF), ErrStalled) {
			t.Errorf("not ended: %v, %v", context.Cause(ctx), d.Cause(io.ErrUnexpectedEOF))
		}
		d.Stop()

		ctx, d = NewWatchdog(t.Context(), time.Minute)
		d.Stop()
		if err := d.Cause(io.EOF); ctx.Err() == nil || !errors.Is(err, io.EOF) {
			t.Errorf("after stop: %v, %v", ctx.Err(), err)
		}
		body := &body{io.NopCloser(bytes.NewReader(make([]byte, 3))), nil}
		ctx, body.watch = NewWatchdog(t.Context(), time.Minute)
		for range 3 {
			time.Sleep(50 * time.Second)
			if _, err := body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := ctx.Err(); err != nil {
			t.Errorf("reading does not reset the watchdog: %v", err)
		}
		body.watch.Stop()
	})
}

// Redirects are followed up to ten times, and not from TLS to plain HTTP.
func TestRedirectsOfRegistries(t *testing.T) {
	for _, c := range []struct {
		from, to string
		before   int
		want     bool
	}{
		{"https://a/x", "https://b/y", 1, true}, {"http://a/x", "http://b/y", 1, true},
		{"http://a/x", "https://b/y", 1, true}, {"https://a/x", "http://a/y", 1, false},
		{"https://a/x", "https://b/y", 9, true}, {"https://a/x", "https://b/y", 10, false},
	} {
		request := func(text string) *http.Request {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			return &http.Request{URL: u}
		}
		if err := checkRedirect(request(c.to),
			slices.Repeat([]*http.Request{request(c.from)}, c.before)); (err == nil) != c.want {
			t.Errorf("%s to %s after %d: %v", c.from, c.to, c.before, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "LOCALHOST": true, "a.localhost:1": true, "127.0.0.1": true,
		"127.1.2.3:80": true, "[::1]:5000": true,
		"10.0.0.1": false, "localhost.example.com": false, "127.0.0.1.example.com:80": false, "example.com": false,
		"[2001:db8::1]:5000": false, "0.0.0.0": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("%s: got %v", host, got)
		}
	}
}

// A host that does not exist remains so; one whose name cannot be resolved may be there later.
func TestUnknownHost(t *testing.T) {
	for want, dns := range map[string]*net.DNSError{
		"unknown host registry.invalid": {Name: "registry.invalid", Err: "no such host", IsNotFound: true},
		"the name of host registry.invalid cannot be resolved: no network": {
			Name: "registry.invalid",
			Err:  "no network",
		},
	} {
		err, transient := Unreached("registry.invalid", &net.OpError{Op: "dial", Err: dns})
		if err.Error() != want || transient == dns.IsNotFound {
			t.Errorf("got %v, transient %t", err, transient)
		}
	}
}

// Each calls the function for every item, at most so many at a time, and ends the others after an error.
func TestEach(t *testing.T) {
	for limit, want := range map[int]int64{0: parallel, 1: 1, 3: 3} {
		var running, most, calls atomic.Int64
		err := Each(t.Context(), limit, make([]int, 20), func(context.Context, int) error {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			calls.Add(1)
			time.Sleep(time.Millisecond)
			return nil
		})
		if err != nil || calls.Load() != 20 || most.Load() > want {
			t.Errorf("limit %d: %d calls, %d at a time, %v", limit, calls.Load(), most.Load(), err)
		}
	}
	failed := errors.New("failed")
	err := Each(t.Context(), 2, []bool{true, false}, func(ctx context.Context, fails bool) error {
		if fails {
			return failed
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// roundTrips answer requests.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Requests are repeated after responses that may pass, with their body, unless they are to be sent once.
func TestRepeatedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		method   string
		body     io.Reader
		step     bool
		statuses []int
		want     int // requests
		status   int
	}{
		"at once":      {http.MethodGet, nil, false, []int{200}, 1, 200},
		"later":        {http.MethodGet, nil, false, []int{503, 429, 200}, 3, 200},
		"with a body":  {http.MethodPost, strings.NewReader("content"), false, []int{503, 200}, 2, 200},
		"never":        {http.MethodGet, nil, false, slices.Repeat([]int{500}, 20), retry.Attempts, 500},
		"refused":      {http.MethodGet, nil, false, []int{404}, 1, 404},
		"upload":       {http.MethodPatch, nil, false, []int{503}, 1, 503},
		"in a step":    {http.MethodGet, nil, true, []int{503}, 1, 503},
		"body of once": {http.MethodPost, io.MultiReader(strings.NewReader("content")), false, []int{503}, 1, 503},
	} {
		n := 0
		// Not a server: net/http would send a body again by itself after some errors.
		responses := roundTrips(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				if text, err := io.ReadAll(r.Body); err != nil || string(text) != "content" {
					t.Errorf("%s: body %q, %v", name, text, err)
				}
			}
			n++
			return &http.Response{StatusCode: c.statuses[n-1], Body: http.NoBody, Request: r}, nil
		})
		ctx := t.Context()
		if c.step {
			ctx = InStep(ctx)
		}
		r, err := http.NewRequestWithContext(ctx, c.method, "http://host", c.body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&transport{responses, time.Millisecond, 0}).RoundTrip(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		resp.Body.Close()
		if n != c.want || resp.StatusCode != c.status {
			t.Errorf("%s: status %d after %d requests", name, resp.StatusCode, n)
		}
	}
}

// A wait for the next attempt ends with the context.
func TestInterruptedWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusServiceUnavailable)
		time.AfterFunc(10*time.Millisecond, cancel)
	}))
	defer s.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Client(false, 0, 0).Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
