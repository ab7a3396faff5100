package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/report"
)

// checkDir checks that the folder, or the first of its parents that exists, is one.
func checkDir(_ context.Context, ref Reference, _ Options) error {
	for dir := filepath.Clean(ref.Name); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		switch {
		// Pull makes it.
		case errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			return err
		case !st.IsDir():
			return &ReferenceError{ref.String(), fmt.Errorf("%s is not a folder", dir)}
		}
		return nil
	}
}

// pushDir copies the files: it is a pull from where they are.
func pushDir(ctx context.Context, ref Reference, a *Artifact, o Options) (*Pushed, error) {
	// The page has the time of the run: the second push of an equal run would be a conflict.
	files := slices.DeleteFunc(slices.Clone(a.Files), func(f File) bool { return f.Role == ReportPage })
	local := &Stored{Reference: ref, Digest: ref, Files: files, open: openPath}
	p, err := local.Pull(ctx, ref.Name, o)
	if err != nil {
		return nil, err
	}
	return &Pushed{ref, ref, p.Downloaded, p.Size, files}, nil
}

// openPath opens a file that is on disk.
func openPath(_ context.Context, f File, from int64) (io.ReadCloser, int64, error) {
	r, err := os.Open(f.Path)
	if err != nil {
		return nil, 0, err
	}
	if _, err := r.Seek(from, io.SeekStart); err != nil {
		return nil, 0, errors.Join(err, r.Close())
	}
	return r, from, nil
}

// listDir lists the files of the only model in the folder.
func listDir(ctx context.Context, ref Reference, _ Options) (*Stored, error) {
	entries, err := os.ReadDir(ref.Name)
	if err != nil {
		return nil, err
	}
	var models []string
	for _, e := range entries {
		if report.Stem(e.Name()) != e.Name() && e.Type().IsRegular() {
			models = append(models, e.Name())
		}
	}
	if len(models) != 1 {
		return nil, &ReferenceError{ref.String(), fmt.Errorf("the folder has %d ONNX models, not one", len(models))}
	}
	a, err := Collect(ctx, filepath.Join(ref.Name, models[0]), CollectOptions{})
	if err != nil {
		return nil, err
	}
	return &Stored{Digest: ref, Files: a.Files, open: openPath}, nil
}
