// Package index writes the index of the reports of many models into their folder, on disk or in a bucket.
package index

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/report"
)

// Write writes the forms of an index, "json" and "html" among formats, into a folder, where they appear together.
func Write(ctx context.Context, folder string, formats []string, sync bool, x *report.Index) (err error) {
	place := folder
	if remote.Is(folder) {
		temporary, failed := atomicfile.NewFolder("")
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, temporary.Close()) }()
		place = temporary.Path
	}
	access, err := atomicfile.Like(ReportPaths(folder, x)...)
	if err != nil {
		return err
	}
	set := &atomicfile.Set{Access: access, Sync: sync}
	defer func() { err = errors.Join(err, set.Close()) }()
	var files []remote.Upload
	for _, form := range []struct {
		format, name string
		write        func(io.Writer) error
	}{{"json", report.IndexJSON, x.JSON}, {"html", report.IndexHTML, x.HTML}} {
		if !slices.Contains(formats, form.format) {
			continue
		}
		path := filepath.Join(place, form.name)
		if err := set.WriteFile(path, form.write); err != nil {
			return err
		}
		files = append(files, remote.Upload{Path: path, URL: remote.Join(folder, form.name)})
	}
	if err := set.Publish(files[len(files)-1].Path); err != nil || !remote.Is(folder) {
		return err
	}
	return remote.Publish(ctx, files)
}

// ReportPaths are the paths on disk of the reports of an index of a folder.
func ReportPaths(folder string, x *report.Index) (paths []string) {
	for _, e := range x.Entries {
		if path, err := untrusted.Path(folder, e.Report); err == nil && !remote.Is(folder) && !remote.Is(e.Report) {
			paths = append(paths, path)
		}
	}
	return paths
}
