package registry

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	orasretry "oras.land/oras-go/v2/registry/remote/retry"

	"github.com/mcompress/mcompress/internal/retry"
)

// headerTimeout is the time that a registry has to answer after it has received a request: one may first store
// gigabytes elsewhere.
const headerTimeout = 5 * time.Minute

// client returns an HTTP client for the host of ref: TLS by the options, and requests that are repeated as package
// retry defines. Those of a step that is repeated as a whole, those with PATCH, which continue an upload, and bodies
// without GetBody are sent once. A redirect from HTTPS to HTTP is refused.
func (o Options) client() *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = headerTimeout
	if o.Insecure {
		base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // --insecure
	}
	repeating := &orasretry.Transport{Base: base, Policy: func() orasretry.Policy { return policy{o.backoff} }}
	return &http.Client{Transport: &transport{base, repeating}, CheckRedirect: checkRedirect}
}

// A policy lets oras's transport, which sends the body of a request again, repeat requests as package retry defines.
type policy struct{ first time.Duration }

// Retry returns the wait before the attempt after the given one, from 0; negative for none.
func (p policy) Retry(attempt int, resp *http.Response, err error) (time.Duration, error) {
	switch {
	case attempt >= retry.Attempts-1,
		err != nil && !retry.Unanswered(err),
		err == nil && !retry.Status(resp.StatusCode):
		return -1, nil
	case err != nil:
		return retry.Backoff(p.first, attempt), nil
	}
	return max(retry.Backoff(p.first, attempt), retry.After(resp)), nil
}

// A transport repeats requests, except for those that are to be sent once.
type transport struct{ once, repeating http.RoundTripper }

// RoundTrip sends a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	// After a PATCH that broke the registry may have a part of its body: upload.resume requests how much.
	if r.Method == http.MethodPatch || isInStep(r.Context()) {
		return t.once.RoundTrip(r)
	}
	return t.repeating.RoundTrip(r)
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

// scheme is that of requests to the host of ref. Plain HTTP is for loopback addresses: elsewhere it would send
// credentials and models that others on the network can read and change.
func (o Options) scheme(ref Reference) (string, error) {
	switch {
	case !o.PlainHTTP:
		return "https", nil
	case !isLoopback(ref.Host):
		return "", &ReferenceError{
			ref.String(),
			fmt.Errorf("plain HTTP is allowed for loopback addresses only, not for %s", ref.Host),
		}
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

// unreached is the error of a request without a response, in words for users.
func unreached(ref Reference, err error) error {
	var dns *net.DNSError
	var op *net.OpError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var request *url.Error
	transient := retry.Unanswered(err) // of the cause, which err has no longer below
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
	return &TransferError{Reference: ref, Err: err, refused: !transient}
}

func addr(op *net.OpError) string {
	if op.Addr == nil {
		return ""
	}
	return op.Addr.String()
}
