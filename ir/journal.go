package ir

import (
	"context"
	"io"
)

// A Journal keeps the results of units of work, so that a run continues after an interruption with the same end result. Units of one run have
// different names.
type Journal interface {
	// Result returns the parts of the result of a unit, ok is false if it is not known.
	Result(unit string) (parts []*io.SectionReader, ok bool)
	// Add keeps the result of a unit and returns its parts.
	Add(ctx context.Context, unit string, parts ...[]byte) ([]*io.SectionReader, error)
	// File is the path of a file of the run that is kept like the results.
	File(ctx context.Context, name string) (string, error)
}

// Once returns the result of a unit: that of an interrupted run in j, or what compute returns, which j keeps. A nil j keeps nothing.
func Once(ctx context.Context, j Journal, unit string, compute func() ([]byte, error)) ([]byte, error) {
	if j == nil {
		return compute()
	}
	if parts, ok := j.Result(unit); ok {
		b := make([]byte, parts[0].Size())
		return b, ReadFull(parts[0], b, 0)
	}
	b, err := compute()
	if err != nil {
		return nil, err
	}
	_, err = j.Add(ctx, unit, b)
	return b, err
}
