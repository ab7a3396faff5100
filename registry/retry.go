package registry

import (
	"context"
	"errors"
)

// IsTransient reports whether err is of a request that may succeed a little later.
func IsTransient(err error) bool {
	var t *TransferError
	return errors.As(err, &t) && !t.Refused
}

// isTransfer reports whether err is of the connection, the registry or an interruption: a later pull resumes.
func isTransfer(err error) bool {
	var t *TransferError
	return errors.As(err, &t) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
