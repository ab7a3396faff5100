package job

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// recipe is the recipe of steps for reports.
func (o *Options) recipe(ctx context.Context, steps []pass.Options) (*report.Recipe, error) {
	if o.Recipe != nil {
		return o.Recipe, nil
	}
	r := pass.Recipe{Steps: steps, StripMetadata: o.Strip, KeepIR: o.KeepIR, DataFiles: o.DataFiles}
	if o.Target != nil {
		r.Target = o.Target.Name
	}
	recorded := &report.Recipe{}
	text, err := r.Text(func(path string) string {
		recorded.Inputs = o.addInput(ctx, recorded.Inputs, path)
		return portablePath(path)
	})
	if err != nil {
		return nil, err
	}
	recorded.Text = string(text)
	recorded.SHA256, err = recorded.Sum()
	return recorded, err
}

// addInput adds a path that a step reads. One that cannot be read, such as the name of an array, is no input: a
// method reports the error if it needs the file.
func (o *Options) addInput(ctx context.Context, inputs []report.RecipeInput, path string) []report.RecipeInput {
	in := report.RecipeInput{Name: portablePath(path)}
	root, paths, err := filesOf(ctx, path)
	if err == nil && o.Digest {
		in.SHA256, err = combinedDigest(ctx, root, paths)
	}
	// Two steps often read the same data.
	if err != nil || len(paths) == 0 || slices.Contains(inputs, in) {
		return inputs
	}
	return append(inputs, in)
}

// portablePath is a path as reports have it: relative to the working folder, or the name of a file outside of it; a URL
// without its query.
func portablePath(path string) string {
	if remote.Is(path) {
		return remote.Shown(path)
	}
	if filepath.IsLocal(path) {
		return filepath.ToSlash(filepath.Clean(path))
	}
	return filepath.Base(path)
}

// inputDigest is the SHA-256, in hexadecimal, of a file that an option of a step names, or of the list of the files
// of a model or folder as onnx.Combined has it, with names relative to that of the model or to the folder.
func inputDigest(ctx context.Context, path string) (string, error) {
	root, paths, err := filesOf(ctx, path)
	if err != nil {
		return "", err
	}
	return combinedDigest(ctx, root, paths)
}

// combinedDigest is the digest of files, with names relative to root.
func combinedDigest(ctx context.Context, root string, paths []string) (_ string, err error) {
	names, sums := make([]string, len(paths)), make([]string, len(paths))
	for i, p := range paths {
		if sums[i], _, err = digest.File(ctx, p, nil); err != nil {
			return "", err
		}
		if names[i], err = relativeName(root, p); err != nil {
			return "", err
		}
	}
	return onnx.Combined(names, sums), nil
}

// relativeName is the name of a file in a folder, with slashes.
func relativeName(folder, path string) (string, error) {
	if remote.Is(path) {
		return strings.TrimPrefix(remote.Shown(path), folder), nil
	}
	name, err := filepath.Rel(folder, path)
	return filepath.ToSlash(name), err
}

// filesOf are the regular files of path, a file, model or folder, in a fixed order, and the folder that has them.
func filesOf(ctx context.Context, path string) (root string, paths []string, err error) {
	if report.Stem(remote.Shown(path)) != remote.Shown(path) {
		f, err := remote.OpenModel(ctx, path)
		if err != nil {
			return "", nil, err
		}
		return remote.Dir(path), f.Paths(), f.Close()
	}
	if remote.Is(path) {
		return remote.Dir(path), []string{path}, nil
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().IsRegular() {
		return filepath.Dir(path), []string{path}, err
	}
	names, err := digest.Names(ctx, path) // what verify-report digests
	for _, name := range names {
		paths = append(paths, filepath.Join(path, filepath.FromSlash(name)))
	}
	return path, paths, err
}
