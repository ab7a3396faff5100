package mcompress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
)

// A Selection is the part of the models that one run compresses.
type Selection struct {
	Index    int    `json:"index"`
	Count    int    `json:"count"` // of parts
	From     string `json:"from,omitempty"`
	Models   int    `json:"models"`
	OfModels int    `json:"of_models"`
	Bytes    int64  `json:"bytes,omitempty"` // of the files of the models; 0 for a whole list
	OfBytes  int64  `json:"of_bytes,omitempty"`
}

// String describes the part in words.
func (s Selection) String() string {
	from := ""
	if s.From != "" {
		from = " (" + s.From + ")"
	}
	return fmt.Sprintf("shard %d/%d%s: %d of %s, %s of %s", s.Index, s.Count, from, s.Models,
		english.Plural(s.OfModels, "model", ""), humanize.IBytes(uint64(s.Bytes)), humanize.IBytes(uint64(s.OfBytes)))
}

// ReadList reads a list of models, separated by newlines or NUL, from the file at a path or URL, or from standard input
// for -, for Request.Models with List.KeepPaths.
func ReadList(ctx context.Context, path string) (list []string, err error) {
	err = remote.ReadInput(ctx, path, fleet.MaxList, func(in io.Reader) (err error) {
		if list, err = fleet.ReadList(in); err != nil {
			return fmt.Errorf("the list %s: %w", remote.Shown(path), err)
		}
		return nil
	})
	return list, err
}

// onlyFiles is an error if a model is not a file on disk, which a field requires.
func onlyFiles(field string, models []string) error {
	if i := slices.IndexFunc(models, registry.IsReference); i >= 0 {
		return fieldErrorf("{%s} requires files: pull %s first", field, models[i])
	}
	if i := slices.IndexFunc(models, remote.Is); i >= 0 {
		return fieldErrorf("{%s} requires files on disk: download %s first", field, remote.Shown(models[i]))
	}
	return nil
}

// A listed is a model of the list and the path of its result.
type listed struct {
	model, output string
	staged        *staged // of a result at a URL, whose output is that on disk; nil for others
}

// published is the path or URL of the result.
func (l listed) published() string {
	if l.staged != nil {
		return l.staged.url
	}
	return l.output
}

// pick returns the models of this shard.
func (x *run) pick(ctx context.Context, outs []string) (mine []listed, s Selection, err error) {
	shard := fleet.Whole
	switch {
	case x.List.Shard != "":
		if shard, err = fleet.ParseShard(x.List.Shard); err != nil {
			return nil, s, err
		}
	case x.List.KeepPaths:
		if shard, err = fleet.FromEnvironment(os.Getenv); err != nil {
			return nil, s, fieldErrorf("%w", err)
		}
	}
	models := x.Models
	s = Selection{Index: shard.Index, Count: shard.Count, From: shard.From, OfModels: len(models)}
	sizes := make([]int64, len(models))
	// Sizes take a request for each model: a whole list needs none.
	if shard.Count > 1 {
		if err := x.measureSizes(ctx, sizes); err != nil {
			return nil, s, err
		}
	}
	for _, n := range sizes {
		s.OfBytes += n
	}
	// Each worker computes the assignment of all: they have no other connection.
	for i, k := range fleet.Assign(sizes, shard.Count) {
		if k == shard.Index {
			mine = append(mine, listed{model: models[i], output: outs[i]})
			s.Bytes += sizes[i]
		}
	}
	s.Models = len(mine)
	return mine, s, nil
}

// parallelSizes is the number of files and artifacts whose sizes are read at a time.
const parallelSizes = 16

// measureSizes sets the sizes of the models.
func (x *run) measureSizes(ctx context.Context, sizes []int64) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelSizes)
	for i, m := range x.Models {
		g.Go(func() (err error) {
			if registry.IsReference(m) {
				sizes[i], err = artifactBytes(ctx, m, x.Registry.options())
				return err
			}
			sizes[i], err = modelBytes(ctx, m)
			return cmp.Or(err, context.Cause(ctx))
		})
	}
	return g.Wait()
}

// artifactBytes is the size of an artifact in a registry; 0 for one that is not there or not valid, of which the run
// reports the error. An error of the transfer is returned: with another size than that of the other workers, models
// would have no shard, or two.
func artifactBytes(ctx context.Context, model string, o registry.Options) (int64, error) {
	ref, err := registry.Parse(model)
	if err != nil {
		return 0, err
	}
	s, err := registry.List(ctx, ref, o)
	switch {
	case errors.Is(err, registry.ErrNotFound) || ExitCode(err) == ExitInput:
		return 0, nil
	case err != nil:
		return 0, err
	}
	var n int64
	for _, f := range s.Files {
		n += f.Size
	}
	return n, nil
}

// modelBytes is the size of the files of a model; 0 for one that cannot be read, of which the run reports the error. An
// error of a transfer is returned, as that of an artifact.
func modelBytes(ctx context.Context, path string) (int64, error) {
	f, err := remote.OpenModel(ctx, path)
	switch {
	case err != nil && remote.Is(path) && ExitCode(err) == ExitIO && !errors.Is(err, fs.ErrNotExist):
		return 0, err
	case err != nil:
		if st, err := os.Stat(path); err == nil {
			return st.Size(), nil
		}
		return 0, nil
	}
	defer f.Close()
	return f.Size(), nil
}

// recognized is the digest of the request, by which List.IfChanged recognizes its results; empty without that.
func (x *run) recognized(ctx context.Context) (string, error) {
	switch {
	case !x.List.IfChanged:
		return "", nil
	case x.Reports.NoDigests || !slices.Contains(x.Reports.Formats, "json"):
		return "", fieldErrorf("{List.IfChanged} requires the digests of JSON reports, which {Reports.Formats} and " +
			"{Reports.NoDigests} turn off")
	}
	return x.digestOf(ctx, x.steps)
}

// neutralFields are fields of a Request that change no result, or are in the recipe of its steps.
var neutralFields = []string{
	"Models", "Steps", "Target", "Output", "ExportDir", "DryRun", "NoSync", "Restart", "Reports.Dir", "List", "Push",
	"Registry", "Limits", "Events", "Alternative", "Baseline", "BaselineOptional", "Gates",
	"Data.Prefetch", "Data.Loaders", "Verification.Data.Prefetch", "Verification.Data.Loaders",
	"Verification.Training.Prefetch", "Verification.Training.Loaders", "Verification.WeightCache",
}

// digestOf is the digest of the request with these steps: of its fields, and of the contents of files that they name.
func (x *run) digestOf(ctx context.Context, steps []pass.Options) (string, error) {
	o, err := x.job(ctx, "", "", steps)
	if err != nil {
		return "", err
	}
	return job.Request(ctx, o, x.options())
}

// options are the fields that are given and not neutral, by their paths.
func (r Request) options() (list []pass.Option) {
	addOptions("", reflect.ValueOf(r), func(name, value string) {
		list = append(list, pass.Option{Name: name, Value: value})
	})
	return list
}

// addOptions adds the fields of a struct that have a value.
func addOptions(prefix string, v reflect.Value, add func(name, value string)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, value := prefix+f.Name, v.Field(i)
		if !f.IsExported() || value.IsZero() || slices.Contains(neutralFields, name) {
			continue
		}
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		switch value.Kind() {
		case reflect.Func:
		case reflect.Struct:
			addOptions(name+".", value, add)
		case reflect.Slice:
			items := make([]string, value.Len())
			for i := range items {
				items[i] = fmt.Sprint(value.Index(i).Interface())
			}
			add(name, strings.Join(items, ","))
		default:
			add(name, fmt.Sprint(value.Interface()))
		}
	}
}
