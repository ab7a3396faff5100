package transfer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcompress/mcompress/internal/retry"
)

// headerTimeout is the time that a registry has to answer after it has received a request: one may first store
// gigabytes elsewhere.
const headerTimeout = 5 * time.Minute

// Client returns an HTTP client that repeats requests as package retry defines, the second attempt after the wait
// first, 0 for that of package retry; insecure accepts any certificate. Requests of a step that is repeated as a whole,
// those with PATCH, which continue an upload, and bodies without GetBody are sent once. A redirect from HTTPS to HTTP
// is refused. A response whose next byte takes longer than stall, 0 for a minute, ends with ErrStalled.
func Client(insecure bool, first, stall time.Duration) *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = headerTimeout
	if insecure {
		base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // --insecure
	}
	return &http.Client{Transport: &transport{base, first, stall}, CheckRedirect: checkRedirect}
}

// A transport repeats requests, except for those that are to be sent once.
type transport struct {
	base  http.RoundTripper
	first time.Duration
	stall time.Duration
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	// After a PATCH that broke the registry may have a part of its body: the upload requests how much.
	once := r.Method == http.MethodPatch || IsInStep(ctx) || r.Body != nil && r.GetBody == nil
	for series := retry.NewSeries(t.first); ; {
		resp, err := t.send(r)
		if once || err == nil && !retry.Status(resp.StatusCode) || err != nil && !retry.Unanswered(err) {
			return resp, err
		}
		cause := err
		if err == nil {
			cause = retry.Delay(errors.New(resp.Status), retry.After(resp))
		}
		again := series.Wait(ctx, cause)
		if !again && ctx.Err() == nil {
			return resp, err
		}
		// The connection is given up: reading what is left of an error could take longer than a new one.
		if err == nil {
			_ = resp.Body.Close()
		}
		if !again {
			return nil, context.Cause(ctx)
		}
		r = r.WithContext(ctx) // a copy: the request is the caller's
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// send sends a request once, and watches its response.
func (t *transport) send(r *http.Request) (*http.Response, error) {
	ctx, watch := NewWatchdog(r.Context(), t.stall)
	// What is sent has a watchdog of its own, and its response may take longer: headerTimeout.
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		watch.Pause()
	}
	resp, err := t.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = watch.Cause(err)
		watch.Stop()
		return nil, err
	}
	watch.Reset()
	resp.Body = &body{resp.Body, watch}
	return resp, nil
}

func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	// Credentials and models could be read and changed on the way.
	if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return fmt.Errorf("redirect from HTTPS to HTTP (%s) is refused", r.URL.Host)
	}
	return nil
}

// Scheme is that of requests to a host. Plain HTTP is for loopback addresses: elsewhere it would send credentials and
// models that others on the network can read and change.
func Scheme(host string, plain bool) (string, error) {
	switch {
	case !plain:
		return "https", nil
	case !isLoopback(host):
		return "", fmt.Errorf("plain HTTP is allowed for loopback addresses only, not for %s", host)
	}
	return "http", nil
}

// isLoopback reports whether host, which may have a port, is this computer: localhost, names below it, 127.0.0.0/8 and
// ::1.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Unreached is the error of a request to a host that has no response, in words for users. It reports whether the same
// request may have one later.
func Unreached(host string, err error) (cause error, transient bool) {
	var dns *net.DNSError
	var op *net.OpError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var request *url.Error
	transient = retry.Unanswered(err) // of the cause, which err has no longer below
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		err = fmt.Errorf("unknown host %s", dns.Name)
	case errors.As(err, &dns):
		err = fmt.Errorf("the name of host %s cannot be resolved: %s", dns.Name, dns.Err)
	case errors.As(err, &certificate):
		err = fmt.Errorf("the certificate of %s is not trusted: %w", host, certificate.Err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		hint := ""
		if isLoopback(host) {
			hint = "; use --plain-http"
		}
		err = fmt.Errorf("%s does not use TLS%s", host, hint)
	case errors.As(err, &op) && op.Op == "dial":
		err = fmt.Errorf("cannot connect to %s: %w", cmp.Or(addr(op), host), op.Err)
	case errors.As(err, &request): // its URL may have a secret
		err = fmt.Errorf("connection to %s: %w", host, request.Err)
	}
	return err, transient
}

func addr(op *net.OpError) string {
	if op.Addr == nil {
		return ""
	}
	return op.Addr.String()
}
