// Package signing is where package s3 registers what signs requests to object storage, so that programs without object
// storage do not link it.
package signing

import (
	"net/http"
	"sync/atomic"
)

// A Signer signs requests with the credentials of the environment, which it requests again before they expire.
type Signer interface {
	// Check is an error if there are no credentials.
	Check() error

	// Sign adds the signature for a region, of the body's digest in X-Amz-Content-Sha256 too.
	Sign(r *http.Request, region string) (*http.Request, error)
}

var registered atomic.Pointer[func(*http.Transport) Signer]

// Register registers the function that makes signers: of the credentials that the environment has then, those of roles
// by requests with a transport.
func Register(signer func(*http.Transport) Signer) { registered.Store(&signer) }

// New returns a signer, or nil if package s3 is not imported.
func New(t *http.Transport) Signer {
	if f := registered.Load(); f != nil {
		return (*f)(t)
	}
	return nil
}
