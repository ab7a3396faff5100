package mcompress

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// A resumption is the journal of a run, and the digest of its source.
type resumption struct {
	ir.Journal
	keep, remove func() error // end the run
	source       *job.Digest  // nil if the journal is that of a division
}

// resume opens the results that an interrupted run for the output left.
func (x *run) resume(ctx context.Context, model, out string, steps []pass.Options) (*resumption, error) {
	if x.division != nil {
		return x.division.resume(ctx, x, model, steps)
	}
	if x.Restart {
		if err := journal.Discard(out); err != nil {
			return nil, err
		}
	}
	// Opened here and read when a digest is needed: by the journal, by the report, or by neither.
	source, err := job.OpenDigest(ctx, model)
	if err != nil {
		return nil, err
	}
	// The identity, for which the source is read, is computed in the background, and only if there is a result to keep.
	j, err := journal.New(ctx, out, func(ctx context.Context) (id journal.Identity, err error) {
		id.Version = job.Version()
		if id.Request, err = x.digestOf(ctx, steps); err == nil {
			id.Source, err = source.SHA256()
		}
		return id, err
	})
	if err != nil {
		var foreign *journal.ForeignError
		if errors.As(err, &foreign) {
			err = fieldErrorf("%w", err)
		}
		return nil, errors.Join(err, source.Close())
	}
	return &resumption{j, j.Close, j.Remove, source}, nil
}

// leave ends a run with this error: its results are kept only if repeating it may help.
func (r *resumption) leave(ctx context.Context, err error) error {
	// A result, a rejected one and an invalid input are final. After an interruption or a full disk the same command
	// continues.
	end := r.remove
	if repeatable(ctx, err) {
		end = r.keep
	}
	if r.source == nil {
		return end()
	}
	return errors.Join(end(), r.source.Close())
}

// done returns the result of an earlier run, nil if there is none of the same source and request. stored is the source
// in a registry, nil if it is a file.
func (x *run) done(ctx context.Context, m listed, stored *registry.Stored, steps []pass.Options) (*Result, error) {
	o := job.Options{Input: m.model, Output: m.published(), Request: x.digest, ReportDir: x.Reports.Dir}
	// Of a source at a URL the tag is compared, as its digest would require reading all of it.
	if m.staged != nil && m.staged.source != "" {
		o.SourceCheck = func(ctx context.Context, report string) (bool, error) {
			tag, err := remote.Source(ctx, report)
			return tag == m.staged.source, err
		}
	}
	if stored != nil {
		o.SourceFiles = []report.File{}
		for _, f := range stored.Files {
			o.SourceFiles = append(o.SourceFiles, report.File{Name: f.Name, Bytes: f.Size, SHA256: f.SHA256})
		}
	}
	res, different, err := job.Done(ctx, o)
	switch { // A run that was killed after it had published the result left its journal.
	case res != nil && stored != nil:
		p := pulledModel{folder: pulledTo(m.output)}
		_ = errors.Join(journal.Discard(m.output), p.leave(ctx, nil))
	case res != nil:
		// Through resume, which removes only what is of this run: a journal of another request is an error and stays.
		if r, err := x.resume(ctx, m.model, m.output, steps); err == nil {
			_ = r.leave(ctx, nil)
		}
	}
	if different != "" {
		x.Events.note(m.model + ": not up to date: " + different)
	}
	if res == nil {
		return nil, err
	}
	return resultOf(res, steps), err
}

// pulledTo is the folder of the pulled source of an output, in that of its journal.
func pulledTo(output string) string { return filepath.Join(journal.Folder(output), "source") }
