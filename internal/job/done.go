package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/report"
)

// Done returns the result of an earlier run of the same request: the source, o.Request and the version of the
// program are those of the report next to the output, and the files are those that the report names. Otherwise it
// returns nil and what is different, "" if there is no report. An error is one of reading, or a source that is not
// valid. The source is read, unless o.SourceFiles has its files or o.SourceCheck confirms it.
func Done(ctx context.Context, o Options) (_ *Result, different string, err error) {
	o.setDefaults()
	if err := o.setOutputPath(); err != nil {
		return nil, "", err
	}
	res, different, err := earlierResult(ctx, o, o.Output)
	if res != nil || err != nil {
		return res, different, err
	}
	// A later run may have been rejected.
	if res, _, err = earlierResult(ctx, o, rejectedPath(o.Output)); res != nil || err != nil {
		different = ""
	}
	return res, different, err
}

// maxReport is the maximum size of a report in bytes.
const maxReport = 1 << 30

// earlierResult is Done for an output at path.
func earlierResult(ctx context.Context, o Options, path string) (*Result, string, error) {
	text, err := remote.ReadFile(ctx, o.ReportPath(path, report.JSONSuffix), maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	rep, err := report.Read(bytes.NewReader(text))
	if err != nil {
		return nil, "the report is not valid", nil
	}
	sum, err := report.Digest(text)
	switch {
	case err != nil || sum != rep.Digest:
		return nil, "the report was edited", nil
	case rep.Tool.Version != o.Version:
		return nil, fmt.Sprintf("version %s, now %s", rep.Tool.Version, o.Version), nil
	case rep.Request == "" || rep.Request != o.Request:
		return nil, "other options or inputs", nil
	}
	different, err := differentFile(ctx, remote.Dir(path), rep.Result.Files)
	if different != "" || err != nil {
		return nil, different, err
	}
	same := false
	if o.SourceCheck != nil {
		if same, err = o.SourceCheck(ctx, o.ReportPath(path, report.JSONSuffix)); err != nil {
			return nil, "", err
		}
	}
	// Of all checks this one may read the whole source: it is the last.
	if !same {
		if same, err = o.matchesSource(ctx, rep); !same || err != nil {
			return nil, "the source changed", err
		}
	}
	return &Result{Input: o.Input, Output: path, Rejected: !rep.Passed(), Report: rep, Done: true}, "", nil
}

// matchesSource reports whether the source of the report is that of the options.
func (o *Options) matchesSource(ctx context.Context, rep *report.Report) (bool, error) {
	if o.SourceFiles != nil {
		return len(Different(rep.Source.Files, o.SourceFiles)) == 0, nil
	}
	if remote.Is(o.Input) {
		return sameObjects(ctx, rep.Source.Files, o.Input)
	}
	var not *NotReproducibleError
	err := sameSource(ctx, rep, o.Input)
	if errors.As(err, &not) {
		return false, nil
	}
	return err == nil, err
}

// sameObjects reports whether the model at a URL has these files. Those whose digests were stored with them are not
// read.
func sameObjects(ctx context.Context, files []report.File, url string) (bool, error) {
	// names are part of the digest of several files
	if len(files) == 0 || len(files) > 1 && files[0].Name != remote.Base(url) {
		return false, nil
	}
	for i, f := range files {
		at := url
		if i > 0 {
			// The first file is the model, the others are its data files next to it.
			at = remote.NextTo(url, f.Name)
		}
		sum, size, err := digest.FileOfSize(ctx, at, f.Bytes)
		if err != nil || size != f.Bytes || !strings.EqualFold(sum, f.SHA256) {
			return false, err
		}
	}
	return true, nil
}

// differentFile describes the first file in a folder that is not the one of a report, "" if all are.
func differentFile(ctx context.Context, folder string, files []report.File) (string, error) {
	for _, f := range files {
		sum, size, err := digest.FileOfSize(ctx, remote.Join(folder, f.Name), f.Bytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return f.Name + " is missing", nil
		case err != nil:
			return "", err
		case size != f.Bytes || !strings.EqualFold(sum, f.SHA256):
			return f.Name + " is not that of the report", nil
		}
	}
	return "", nil
}
