package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/pass"
)

// journal opens the results that an interrupted run for the output left.
func (w *writing) journal(c *cli.Context, t *tool, model, out string, steps []pass.Options) (*journal.Journal, error) {
	if w.restart {
		if err := journal.Discard(out); err != nil {
			return nil, err
		}
	}
	j, err := journal.New(c.Context, out, func(ctx context.Context) (id journal.Identity, err error) {
		id.Version = job.Version()
		if id.Source, err = job.SourceDigest(ctx, model); err == nil {
			id.Request, err = w.request(c, t, steps)
		}
		return id, err
	})
	var foreign *journal.ForeignError
	if errors.As(err, &foreign) {
		err = &usageError{err}
	}
	return j, err
}

// leave closes a journal after a run with this error: its results are needed only if the run is to be repeated.
func leave(j *journal.Journal, err error) error {
	if err != nil {
		return j.Close()
	}
	return j.Remove()
}
