package job

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/report"
)

// A NotReproducibleError is a report that Reproduce cannot repeat, or an input that is not that of the report.
type NotReproducibleError struct{ Reason string }

// Error returns the reason.
func (e *NotReproducibleError) Error() string { return e.Reason }

func notReproducible(format string, args ...any) error {
	return &NotReproducibleError{fmt.Sprintf(format, args...)}
}

// FindInput is the path of an input of a recipe in one of the folders: that with the digest of the report.
func FindInput(ctx context.Context, in report.RecipeInput, folders []string) (string, error) {
	var errs []error
	for _, dir := range folders {
		// Given folders are laid out as at the time of the report, or hold the files alone. The name is that of a report,
		// which may lead out of them.
		for _, name := range []string{in.Name, path.Base(in.Name)} {
			at, err := untrusted.Path(dir, name)
			if err != nil {
				continue
			}
			sum, err := inputDigest(ctx, at)
			switch {
			case err != nil:
				errs = append(errs, err)
			case in.SHA256 == "" || sum == in.SHA256:
				return at, nil
			default:
				errs = append(errs, notReproducible("%s: the SHA-256 is %s, the report has %s", at, sum, in.SHA256))
			}
		}
	}
	var other *NotReproducibleError
	// A file with another digest says more than the folders that have no file.
	if errors.As(errors.Join(errs...), &other) {
		return "", other
	}
	return "", notReproducible("%s: not found; name its folder with --inputs", in.Name)
}

// Reproduce compresses the source of a report again, with o.Steps, which are those of its recipe, and returns the
// files of the result without keeping them. The source has to be the model at o.Input.
func Reproduce(ctx context.Context, r *report.Report, o Options) (_ []report.File, err error) {
	if r.Recipe == nil || r.Result.Planned || len(r.Result.Files) == 0 {
		return nil, notReproducible("the report has no recipe or no result: it is of a comparison or a dry run")
	}
	if err := sameSource(ctx, r, o.Input); err != nil {
		return nil, err
	}
	dir, err := atomicfile.NewFolder("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	o.Output = filepath.Join(dir.Path, filepath.Base(r.Result.Files[0].Name)) // names of data files are part of the model
	o.Recipe, o.Version = r.Recipe, r.Tool.Version
	// Without digests the metadata of the result lacks that of the source, which is part of its bytes.
	o.Digest = r.Source.Files[0].SHA256 != ""
	res, err := Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return res.Report.Result.Files, nil
}

// sameSource compares the digests of the source with the report.
func sameSource(ctx context.Context, r *report.Report, path string) (err error) {
	f, err := remote.OpenModel(ctx, path)
	if err != nil {
		return withPath(path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sums, err := startDigests(ctx, f, true, nil).wait()
	if err != nil {
		return err
	}
	got := files(f, sums)
	if len(got) != len(r.Source.Files) {
		return notReproducible("%s: %d files, the source of the report has %d", path, len(got), len(r.Source.Files))
	}
	for i, want := range r.Source.Files {
		if len(got) > 1 && got[i].Name != want.Name { // names are part of the digest of several files
			return notReproducible("%s: the name of %s in the report is %s", path, got[i].Name, want.Name)
		}
		if want.SHA256 != "" && got[i].SHA256 != want.SHA256 {
			return notReproducible("%s: the SHA-256 of %s is %s, the report has %s", path, got[i].Name,
				got[i].SHA256, want.SHA256)
		}
	}
	return nil
}

// Different are the files of want that are not among got, or have another size or digest.
func Different(want, got []report.File) []report.File {
	return slices.DeleteFunc(slices.Clone(want), func(w report.File) bool {
		return slices.ContainsFunc(got, func(g report.File) bool {
			return g.Name == w.Name && g.Bytes == w.Bytes && (w.SHA256 == "" || g.SHA256 == w.SHA256)
		})
	})
}
