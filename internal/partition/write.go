package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A Manifest describes the files of a chain and the values passed between them.
type Manifest struct {
	Model   string    `json:"model"`
	Stages  []Member  `json:"stages"`
	Outputs []Arrival `json:"outputs"` // of the whole model
}

// A Member is one file of a chain.
type Member struct {
	File    string    `json:"file"`
	Parts   []Part    `json:"parts"` // this file, and its external data file if any
	Inputs  []Arrival `json:"inputs"`
	Outputs []string  `json:"outputs"`
}

// A Part is a file on disk.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// An Arrival is a value and the file that produces it, none for a model input.
type Arrival struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
}

// A Written is the result of Write.
type Written struct {
	Plan     *Plan     `json:"plan"`
	Manifest string    `json:"manifest"` // path of the manifest
	Chain    *Manifest `json:"chain"`
}

// Write partitions the model at path and writes NAME.stage1.onnx etc. and NAME.stages.json into
// dir, atomically: all files appear together when all are complete. Weights are streamed: memory does not
// depend on their size.
func Write(ctx context.Context, path, dir string, o Options, s onnx.SaveOptions) (_ *Written, err error) {
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	plan, declared, err := cut(ctx, f.Model, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	w := &chain{plan: plan, types: declared, source: f, dir: dir, name: strings.TrimSuffix(filepath.Base(path), ".onnx"), save: s}
	w.set = &atomicfile.Set{Sync: s.Sync}
	defer func() { err = errors.Join(err, w.set.Close()) }()
	if w.set.Access, err = atomicfile.Like(f.Paths()...); err != nil {
		return nil, err
	}
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	manifest := filepath.Join(dir, w.manifestName())
	return &Written{plan, manifest, w.manifest}, w.set.Publish(manifest)
}

// A chain is a set of files being written.
type chain struct {
	plan     *Plan
	types    map[string]*ir.Type
	source   *onnx.File
	dir      string
	name     string
	save     onnx.SaveOptions
	set      *atomicfile.Set // all files, the manifest last
	manifest *Manifest
	written  int64 // bytes of weights in finished stages
}

func (c *chain) manifestName() string { return c.name + ".stages.json" }

func (c *chain) stageName(k int) string { return fmt.Sprintf("%s.stage%d.onnx", c.name, k+1) }

func (c *chain) write(ctx context.Context) error {
	c.manifest = &Manifest{Model: filepath.Base(c.source.Path), Outputs: []Arrival{}}
	for k := range c.plan.Stages {
		if err := c.stage(ctx, k); err != nil {
			return err
		}
	}
	for _, v := range c.source.Model.Graph.Outputs {
		c.manifest.Outputs = append(c.manifest.Outputs, Arrival{v.Name, c.producer(v.Name)})
	}
	text, err := json.MarshalIndent(c.manifest, "", "  ")
	if err != nil {
		return err
	}
	return c.set.WriteFile(filepath.Join(c.dir, c.manifestName()), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// stage writes stage k, from its own reading of the model, and verifies it.
func (c *chain) stage(ctx context.Context, k int) (err error) {
	f, err := onnx.OpenContext(ctx, c.source.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := c.plan.extract(f.Model, c.types, k); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	s := c.save
	s.Progress = c.progress()
	written, err := onnx.Layout(f.Model, c.stageName(k), onnx.LayoutOptions{External: f.External()}).Stage(ctx, c.set, filepath.Join(c.dir, c.stageName(k)), s)
	if err != nil {
		return err
	}
	if err := c.verify(ctx, k); err != nil {
		return err
	}
	c.written += c.plan.Stages[k].Weights
	m := Member{File: c.stageName(k), Inputs: []Arrival{}, Outputs: []string{}}
	for _, w := range written {
		m.Parts = append(m.Parts, Part(w))
	}
	for _, in := range c.plan.Stages[k].Inputs {
		m.Inputs = append(m.Inputs, Arrival{in.Name, c.producer(in.Name)})
	}
	for _, out := range f.Model.Graph.Outputs {
		m.Outputs = append(m.Outputs, out.Name)
	}
	c.manifest.Stages = append(c.manifest.Stages, m)
	return nil
}

// progress is the total progress of all stages.
func (c *chain) progress() func(done, total int64) {
	if c.save.Progress == nil {
		return nil
	}
	before, all := c.written, int64(0)
	for _, s := range c.plan.Stages {
		all += s.Weights
	}
	return func(done, _ int64) { c.save.Progress(min(all, before+done), all) }
}

// producer is the written file that has an output of this name.
func (c *chain) producer(name string) string {
	for _, m := range c.manifest.Stages {
		for _, out := range m.Outputs {
			if out == name {
				return m.File
			}
		}
	}
	return ""
}

// verify opens stage k under its temporary name.
func (c *chain) verify(ctx context.Context, k int) error {
	dir, err := c.set.Folder(filepath.Join(c.dir, c.stageName(k)))
	if err != nil {
		return err
	}
	out, err := onnx.OpenContext(ctx, filepath.Join(dir, c.stageName(k)))
	if err != nil {
		return fmt.Errorf("the output cannot be read back: %w", err)
	}
	return errors.Join(out.Model.Verify(), out.Close())
}
