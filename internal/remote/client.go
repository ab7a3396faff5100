package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcompress/mcompress/internal/remote/signing"
	"github.com/mcompress/mcompress/internal/retry"
)

// settings are those of requests.
type settings struct {
	pause     time.Duration // before the second attempt
	copySize  int64         // see copySize
	transport *http.Transport
	clients   sync.Map // the clients of S3, by the environment that they are of
}

// processSettings are the settings of this process: its files have connections and credentials in common.
var processSettings = sync.OnceValue(func() *settings { return newSettings(retry.First) })

func newSettings(pause time.Duration) *settings {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	// Compression is off, as ranges count the bytes of the file as it is stored.
	return &settings{pause: pause, copySize: copySize, transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute, DisableCompression: true,
	}}
}

// A ranger requests ranges of one object.
type ranger interface {
	// get requests n bytes from off; the object must have this tag unless it is empty.
	get(ctx context.Context, off, n int64, match tag) (*http.Response, error)
}

// A tag identifies the content of an object.
type tag struct{ etag, modified string }

func (t tag) set(h http.Header) {
	switch {
	case t.etag != "" && !strings.HasPrefix(t.etag, "W/"): // a weak one never matches
		h.Set("If-Match", t.etag)
	case t.modified != "":
		h.Set("If-Unmodified-Since", t.modified)
	}
}

func tagOf(h http.Header) tag { return tag{h.Get("ETag"), h.Get("Last-Modified")} }

// ranger returns that of a location.
func (s *settings) ranger(ctx context.Context, loc location) (ranger, error) {
	if loc.url != nil {
		return &webFile{loc.url, &http.Client{Transport: s.transport, CheckRedirect: checkRedirect}}, nil
	}
	c, err := s.client(ctx, loc.text)
	if err != nil {
		return nil, err
	}
	return &s3File{c, loc.object()}, nil
}

// A webFile is a URL.
type webFile struct {
	url    *url.URL
	client *http.Client
}

func (f *webFile) get(ctx context.Context, off, n int64, match tag) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	match.set(r.Header)
	resp, err := f.client.Do(r)
	if err != nil {
		return nil, withoutURL(err)
	}
	// Status 416 has the size in Content-Range, by which begin finds an empty file.
	switch {
	case resp.StatusCode == http.StatusPartialContent,
		resp.StatusCode == http.StatusRequestedRangeNotSatisfiable,
		resp.StatusCode == http.StatusOK && resp.ContentLength == 0:
		return resp, nil
	case resp.StatusCode == http.StatusOK:
		err = refusedf("the server does not support range requests: download the file first")
	default:
		err = responseError(resp)
	}
	return nil, errors.Join(err, resp.Body.Close())
}

// maxRedirects limits the redirects of a request.
const maxRedirects = 5

// checkRedirect refuses redirects to what a URL of another host may not reach: plain HTTP, and addresses of this
// computer and its network.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	ip := net.ParseIP(r.URL.Hostname())
	inside := isLoopback(r.URL.Hostname()) ||
		ip != nil && (ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
	switch {
	case len(via) > maxRedirects:
		return refusedf("more than %d redirects", maxRedirects)
	case first.Scheme == httpsScheme && r.URL.Scheme != httpsScheme,
		r.URL.Scheme != httpsScheme && r.URL.Scheme != httpScheme:
		return refusedf("a redirect from https:// to %s:// is refused", r.URL.Scheme)
	// A program that runs within a network must not be led to its services by a server outside of it (server-side
	// request forgery).
	case r.URL.Scheme == httpScheme && !isLoopback(r.URL.Hostname()),
		inside && r.URL.Hostname() != first.Hostname() && !isLoopback(first.Hostname()):
		return refusedf("a redirect to %s is refused", r.URL.Hostname())
	}
	return nil
}

// An s3File is an object of a bucket.
type s3File struct {
	client *s3Client
	object
}

func (f *s3File) get(ctx context.Context, off, n int64, match tag) (*http.Response, error) {
	h := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, off+n-1)}}
	match.set(h)
	resp, err := f.client.do(ctx, s3Request{method: http.MethodGet, object: f.object, header: h})
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusRequestedRangeNotSatisfiable {
		return f.emptyRange(ctx)
	}
	return resp, err
}

// emptyRange is the response to a range of an empty object, which not every server describes.
func (f *s3File) emptyRange(ctx context.Context) (*http.Response, error) {
	h, err := f.client.head(ctx, f.object)
	if err != nil {
		return nil, err
	}
	h.Set("Content-Range", "bytes */"+h.Get("Content-Length"))
	return &http.Response{StatusCode: http.StatusRequestedRangeNotSatisfiable, Header: h, Body: http.NoBody}, nil
}

// amazon is the endpoint of S3 without AWS_ENDPOINT_URL.
const amazon = "https://s3.amazonaws.com"

// client is the client of S3 for the environment of this process. The region of a bucket of Amazon's is that of its
// responses if none is set.
func (s *settings) client(ctx context.Context, path string) (*s3Client, error) {
	endpoint := firstOf("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	if endpoint == "" {
		endpoint = amazon
	}
	region := firstOf("AWS_REGION", "AWS_DEFAULT_REGION")
	// The environment may change between two calls of a library: each has a client and its cached credentials.
	key := strings.Join(
		[]string{
			endpoint,
			region,
			os.Getenv("AWS_PROFILE"),
			os.Getenv("AWS_SHARED_CREDENTIALS_FILE"),
			os.Getenv("AWS_ACCESS_KEY_ID"),
			os.Getenv("AWS_SECRET_ACCESS_KEY"),
			os.Getenv("AWS_SESSION_TOKEN"),
		},
		"\x00",
	)
	if c, ok := s.clients.Load(key); ok {
		return c.(*s3Client), nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != httpsScheme && u.Scheme != httpScheme:
		return nil, &PathError{path, fmt.Errorf("AWS_ENDPOINT_URL is not the URL of a server: use https://HOST")}
	case u.Scheme == httpScheme && !isLoopback(u.Hostname()):
		return nil, &PathError{
			path,
			fmt.Errorf("AWS_ENDPOINT_URL is %s: http:// is for loopback addresses only", Shown(endpoint)),
		}
	}
	signer := signing.New(s.transport)
	if signer == nil {
		return nil, &PathError{
			path,
			errors.New("this program has no object storage: import github.com/mcompress/mcompress/s3"),
		}
	}
	err = signer.Check()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &Error{Shown(path), err}
	}
	c := &s3Client{
		http:     &http.Client{Transport: s.transport},
		endpoint: u,
		signer:   signer,
		region:   region,
		regions:  map[string]string{},
	}
	// A redirect is to another region, for which the request has to be signed again.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	known, _ := s.clients.LoadOrStore(key, c)
	return known.(*s3Client), nil
}

// firstOf is the first variable of the environment that is not empty.
func firstOf(names ...string) string {
	for _, n := range names {
		if v := os.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}

// drained closes a body after reading what is left of it, so that its connection is used again.
func drained(body io.ReadCloser) error {
	_, _ = io.CopyN(io.Discard, body, maxErrorBody)
	return body.Close()
}
