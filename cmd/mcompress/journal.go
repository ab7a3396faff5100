package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A resumption is the journal of a run, and the digest of its source.
type resumption struct {
	ir.Journal
	keep, remove func() error // end the run
	source       *job.Digest  // nil if the journal is that of a division
}

// resume opens the results that an interrupted run for the output left.
func (w *writing) resume(c *cli.Context, t *tool, model, out string, steps []pass.Options) (*resumption, error) {
	if t.division != nil {
		return t.division.resume(c, t, w, model, steps)
	}
	if w.restart {
		if err := journal.Discard(out); err != nil {
			return nil, err
		}
	}
	source, err := job.OpenDigest(c.Context, model)
	if err != nil {
		return nil, err
	}
	j, err := journal.New(c.Context, out, func(ctx context.Context) (id journal.Identity, err error) {
		id.Version = job.Version()
		if id.Request, err = w.request(c, t, steps); err == nil {
			id.Source, err = source.SHA256()
		}
		return id, err
	})
	if err != nil {
		var foreign *journal.ForeignError
		if errors.As(err, &foreign) {
			err = &usageError{err}
		}
		return nil, errors.Join(err, source.Close())
	}
	return &resumption{j, j.Close, j.Remove, source}, nil
}

// repeatable reports whether repeating a run that ended with this error may help. One that an interrupt reached after its end has none.
func repeatable(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || exitCode(err) == exitIO)
}

// leave ends a run with this error: its results are kept only if repeating it may help.
func (r *resumption) leave(ctx context.Context, err error) error {
	end := r.remove
	if repeatable(ctx, err) {
		end = r.keep
	}
	if r.source == nil {
		return end()
	}
	return errors.Join(end(), r.source.Close())
}
