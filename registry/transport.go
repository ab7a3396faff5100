package registry

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

// headerTimeout is the time that a registry has to answer after it has received a request: one may first store gigabytes elsewhere.
const headerTimeout = 5 * time.Minute

// maxWait limits the wait of Retry-After.
const maxWait = 5 * time.Minute

// client returns an HTTP client for the host of ref: TLS by the options, and requests that are repeated with exponential backoff after
// 408, 429 and 5xx, lost connections and timeouts, at the time that Retry-After names. Requests with PATCH, and bodies without GetBody,
// are sent once. A redirect from HTTPS to HTTP is refused.
func (o Options) client() *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = headerTimeout
	if o.Insecure {
		base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // --insecure
	}
	policy := &retry.GenericPolicy{
		Retryable: retry.DefaultPredicate,
		Backoff: func(attempt int, resp *http.Response) time.Duration {
			return max(retryAfter(resp), backoff(o.firstWait(), attempt))
		},
		MaxWait: maxWait, MaxRetry: attempts - 1,
	}
	again := &retry.Transport{Base: base, Policy: func() retry.Policy { return policy }}
	return &http.Client{Transport: &transport{base, again}, CheckRedirect: checkRedirect}
}

// A transport repeats requests, except for those with PATCH, which continue an upload.
type transport struct {
	once, again http.RoundTripper
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		return t.once.RoundTrip(r)
	}
	return t.again.RoundTrip(r)
}

func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return fmt.Errorf("redirect from HTTPS to HTTP (%s) is refused", r.URL.Host)
	}
	return nil
}

// retryAfter is the wait that a response requests (RFC 9110, section 10.2.3): seconds, or a time, which the server's clock is compared
// with. 0 if it names none.
func retryAfter(resp *http.Response) time.Duration {
	if resp == nil {
		return 0
	}
	value := resp.Header.Get("Retry-After")
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		return time.Duration(min(n, int(maxWait/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0
	}
	return min(at.Sub(now), maxWait)
}

// scheme is that of requests to the host of ref. Plain HTTP is for loopback addresses: elsewhere it would send credentials and models
// that others on the network can read and change.
func (o Options) scheme(ref Reference) (string, error) {
	switch {
	case !o.PlainHTTP:
		return "https", nil
	case !isLoopback(ref.Host):
		return "", &ReferenceError{ref.String(), fmt.Errorf("plain HTTP is allowed for loopback addresses only, not for %s", ref.Host)}
	}
	return "http", nil
}

// isLoopback reports whether host, which may have a port, is this computer: localhost, names below it, 127.0.0.0/8 and ::1.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// unreached is the error of a request without a response, in words for users.
func unreached(ref Reference, err error) error {
	var dns *net.DNSError
	var op *net.OpError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var request *url.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		err = fmt.Errorf("unknown host %s", dns.Name)
	case errors.As(err, &dns):
		err = fmt.Errorf("the name of host %s cannot be resolved: %s", dns.Name, dns.Err)
	case errors.As(err, &certificate):
		err = fmt.Errorf("the certificate of %s is not trusted: %w", ref.Host, certificate.Err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		hint := ""
		if isLoopback(ref.Host) {
			hint = "; use --plain-http"
		}
		err = fmt.Errorf("%s does not use TLS%s", ref.Host, hint)
	case errors.As(err, &op) && op.Op == "dial":
		err = fmt.Errorf("cannot connect to %s: %w", cmp.Or(addr(op), ref.Host), op.Err)
	case errors.As(err, &request): // its URL may have a secret
		err = fmt.Errorf("connection to %s: %w", ref.Host, request.Err)
	}
	return &TransferError{Reference: ref, Err: err}
}

func addr(op *net.OpError) string {
	if op.Addr == nil {
		return ""
	}
	return op.Addr.String()
}
