package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/partition"
)

// ManifestVersion is the version of the schemas of Manifest and ShardManifest. Other versions are rejected.
const ManifestVersion = 1

// Write partitions the model at path and writes NAME.stage1.onnx etc. and NAME.stages.json into
// dir, atomically: all files appear together when all are complete. Weights are streamed: memory does not
// depend on their size.
func Write(ctx context.Context, path, dir string, o Options, s onnx.SaveOptions) (_ *partition.Split, err error) {
	w, err := newWriter(ctx, path, dir, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	plan, err := New(ctx, w.source.Model, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &chain{writer: w, plan: plan}
	if err := c.write(ctx); err != nil {
		return nil, err
	}
	manifest, err := w.publish(ctx, ".stages.json", c.manifest)
	return &partition.Split{Plan: plan.Plan, Manifest: manifest, Chain: c.manifest}, err
}

// A writer writes parts of a model into one set of files.
type writer struct {
	source       *onnx.File
	dir          string
	name         string // of the model, without extension
	save         onnx.SaveOptions
	set          *atomicfile.Set // all files, the manifest last
	writtenBytes int64           // bytes of weights in finished files
}

func newWriter(ctx context.Context, path, dir string, s onnx.SaveOptions) (*writer, error) {
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	w := &writer{
		source: f,
		dir:    dir,
		name:   report.Stem(filepath.Base(path)),
		save:   s,
		set:    &atomicfile.Set{Sync: s.Sync},
	}
	if w.set.Access, err = atomicfile.Like(f.Paths()...); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *writer) close() error { return errors.Join(w.set.Close(), w.source.Close()) }

// publish writes the manifest and gives all files their names.
func (w *writer) publish(ctx context.Context, suffix string, manifest any) (path string, err error) {
	path = filepath.Join(w.dir, w.name+suffix)
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return "", err
	}
	if err := w.set.WriteFile(path, func(out io.Writer) error {
		_, err := out.Write(append(text, '\n'))
		return err
	}); err != nil {
		return "", err
	}
	// The last check: Publish is not interrupted, so that all files get their names or none does.
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	return path, w.set.Publish(path)
}

// file writes f, a reduced reading of the model with that number of bytes of weights of all, and verifies it.
func (w *writer) file(ctx context.Context, f *onnx.File, name string, weights, all int64) (parts []partition.Part, err error) {
	s := w.save
	if before := w.writtenBytes; s.Progress != nil {
		s.Progress = func(done, _ int64) { w.save.Progress(min(all, before+done), all) }
	}
	written, err := onnx.Layout(f.Model, name, onnx.LayoutOptions{External: f.External()}).
		Stage(ctx, w.set, filepath.Join(w.dir, name), opset.BrokenBy(w.source.Model), s)
	if err != nil {
		return nil, err
	}
	w.writtenBytes += weights
	for _, p := range written {
		parts = append(parts, partition.Part(p))
	}
	return parts, w.verify(ctx, name)
}

// verify opens a file under its temporary name.
func (w *writer) verify(ctx context.Context, name string) error {
	dir, err := w.set.Folder(filepath.Join(w.dir, name))
	if err != nil {
		return err
	}
	out, err := onnx.OpenContext(ctx, filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("the output cannot be read back: %w", err)
	}
	return errors.Join(out.Model.Verify(), out.Close())
}

// A chain writes pipeline stages.
type chain struct {
	*writer
	plan     *Plan
	manifest *partition.Manifest
}

func (c *chain) write(ctx context.Context) error {
	c.manifest = &partition.Manifest{Version: ManifestVersion, Model: filepath.Base(c.source.Path), Outputs: []partition.Arrival{}}
	for k := range c.plan.Stages {
		if err := c.stage(ctx, k); err != nil {
			return err
		}
	}
	for _, v := range c.source.Model.Graph.Outputs {
		c.manifest.Outputs = append(c.manifest.Outputs, partition.Arrival{Name: v.Name, From: c.producer(v.Name)})
	}
	return nil
}

// stage writes stage k, from its own reading of the model.
func (c *chain) stage(ctx context.Context, k int) (err error) {
	f, err := onnx.OpenContext(ctx, c.source.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := c.plan.extract(f.Model, k); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	m := partition.Member{File: fmt.Sprintf("%s.stage%d.onnx", c.name, k+1), Inputs: []partition.Arrival{}, Outputs: []string{}}
	if m.Parts, err = c.file(ctx, f, m.File, c.plan.Stages[k].Weights, c.weights()); err != nil {
		return err
	}
	for _, in := range c.plan.Stages[k].Inputs {
		m.Inputs = append(m.Inputs, partition.Arrival{Name: in.Name, From: c.producer(in.Name)})
	}
	for _, out := range f.Model.Graph.Outputs {
		m.Outputs = append(m.Outputs, out.Name)
	}
	c.manifest.Stages = append(c.manifest.Stages, m)
	return nil
}

// weights are the bytes of weights of all stages.
func (c *chain) weights() (all int64) {
	for _, s := range c.plan.Stages {
		all += s.Weights
	}
	return all
}

// producer is the written file that has an output of this name.
func (c *chain) producer(name string) string {
	for _, m := range c.manifest.Stages {
		if slices.Contains(m.Outputs, name) {
			return m.File
		}
	}
	return ""
}
