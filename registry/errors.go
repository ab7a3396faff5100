package registry

import (
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/redact"
)

// A ReferenceError is a reference that Parse does not accept, or that does not fit the operation.
type ReferenceError struct {
	Reference string
	Err       error
}

// Error names the reference, without a password.
func (e *ReferenceError) Error() string {
	return redact.Text(fmt.Sprintf("invalid reference %q: %v", e.Reference, e.Err))
}

// Unwrap returns the cause.
func (e *ReferenceError) Unwrap() error { return e.Err }

// A ConflictError is a tag, alias or file that exists with other content and is not to be replaced.
type ConflictError struct {
	What  string // such as a reference or a path
	There string // its content, such as a digest
}

// Error names the option that replaces it.
func (e *ConflictError) Error() string {
	return fmt.Sprintf(
		"%s exists with other content (%s); choose another name, or replace it with --overwrite",
		e.What,
		e.There,
	)
}

// ErrNotFound is the cause of a *TransferError for a tag, alias or repository that the registry does not have.
var ErrNotFound = errors.New("not found")

// A TransferError is a registry that cannot be reached, or that refuses a request. A retry may help.
type TransferError struct {
	Reference Reference
	Err       error
	Refused   bool // the registry answered: the same request would have the same response
}

// Error names the reference.
func (e *TransferError) Error() string { return fmt.Sprintf("%s: %v", e.Reference, e.Err) }

// Unwrap returns the cause.
func (e *TransferError) Unwrap() error { return e.Err }

// A ContentError is content that is not as declared: a wrong digest or size, an invalid manifest, or the name of a file
// that is not inside the folder. A retry does not help.
type ContentError struct {
	What string // the file, path or reference
	Err  error
}

// Error names the content.
func (e *ContentError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }

// Unwrap returns the cause.
func (e *ContentError) Unwrap() error { return e.Err }
