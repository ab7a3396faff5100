package tune

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// recordFailure sets failed to an error of one candidate, which ends its measurement and not the search, and returns
// all others: the end of ctx, mistakes in options, errors of files and of the source, and measurements of other
// processes.
func (t *tuner) recordFailure(ctx context.Context, err error, failed *string) error {
	var option *pass.OptionError
	var file *fs.PathError
	var number syscall.Errno
	var side *verify.SideError
	_, elsewhere := ir.ElsewhereIn(err)
	switch {
	// None of these is about the candidate: a search that went on would choose without what another process measures,
	// or without a disk.
	case err == nil, elsewhere, ctx.Err() != nil:
		return err
	case errors.As(err, &option), errors.As(err, &file), errors.As(err, &number),
		errors.As(err, &side) && side.Side == verify.First:
		return err
	}
	// Reports are those of any run.
	*failed = job.WithoutFolders(err.Error(), filepath.Join(t.Dir, "temporary"), t.Input, t.Data.Path)
	return nil
}

// leftOut lists the candidates that failed on the whole model, as the end of an error; empty if there are none.
func (t *tuner) leftOut() string {
	text := ""
	for _, l := range t.search.LeftOut {
		text += "; " + l.Method + ": " + l.Error
	}
	return text
}
