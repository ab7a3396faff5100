package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/retry"
)

// ErrChanged is the cause of an *Error of an object that is no longer the one that was opened.
var ErrChanged = errors.New("the object was replaced while it was read; start again")

// An Error is a file that cannot be read or written at this time. A later attempt may succeed.
type Error struct {
	Path string // without the query of a URL
	Err  error
}

// Error names the file.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A statusError is the response to a request that failed.
type statusError struct {
	status        int
	code, message string // of S3
	region        string // in which S3 has the bucket, if it is another than that of the request
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("status %d", e.status)
	if name := cmp.Or(e.code, http.StatusText(e.status)); name != "" {
		text += " " + name
	}
	if e.message != "" {
		text += ": " + e.message
	}
	switch {
	case e.code == "ExpiredToken" || e.code == "ExpiredTokenException" || e.code == "RequestExpired":
		text += " (the credentials have expired: renew them)"
	case e.status == http.StatusForbidden || e.status == http.StatusUnauthorized:
		text += " (access is denied: check the credentials, or whether the signed URL has expired)"
	}
	return text
}

// Is makes a missing object fs.ErrNotExist, and one that does not match its ETag ErrChanged.
func (e *statusError) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.status == http.StatusNotFound
	case ErrChanged:
		return e.status == http.StatusPreconditionFailed
	}
	return false
}

// maxErrorBody limits what is read of a response about an error.
const maxErrorBody = 64 << 10

// readXML decodes a document of at most limit bytes.
func readXML(r io.Reader, limit int64, out any) error {
	text, err := bounded.Read(r, limit)
	if err != nil {
		return err
	}
	return bounded.XML(text, out)
}

// responseError is the error of a response, which may have S3's description of it.
func responseError(r *http.Response) error {
	e := &statusError{status: r.StatusCode}
	var described struct{ Code, Message, Region string }
	if readXML(r.Body, maxErrorBody, &described) == nil {
		e.code, e.message = described.Code, described.Message
	}
	// A redirect has it in the header, a signature for another region in the body.
	e.region = cmp.Or(r.Header.Get("X-Amz-Bucket-Region"), described.Region)
	return retry.Delay(e, retry.After(r))
}

// withoutURL is the error of a request without its URL, which may have a signature.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

// errRange is a response that is not the requested range. The same request may have another response from a server that
// is not faulty.
var errRange = errors.New("the server sent another range than the requested one")

// transientCodes are errors of S3 that pass, though their statuses are those of wrong requests: a body that arrived too
// slowly, a limit of requests, and a conditional request at the same time.
var transientCodes = map[string]bool{
	"RequestTimeout": true, "SlowDown": true, "Throttling": true, "ThrottlingException": true,
	"RequestLimitExceeded": true, "RequestThrottled": true,
	"ConditionalRequestConflict": true,
}

// transient reports whether the same request may succeed a little later.
func transient(err error) bool {
	var status *statusError
	var refused *refusedError
	switch {
	case errors.As(err, &status):
		return retry.Status(status.status) || transientCodes[status.code]
	case errors.As(err, &refused), errors.Is(err, ErrChanged):
		return false
	}
	return retry.Unanswered(err)
}

// A refusedError is a request that is not made, or a response that no other attempt would change.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

func refusedf(format string, args ...any) error { return &refusedError{fmt.Errorf(format, args...)} }

// failed is err as an *Error of the file at path.
func failed(path string, err error) error {
	if errors.Is(err, ErrChanged) {
		err = ErrChanged
	}
	return &Error{Shown(path), err}
}
