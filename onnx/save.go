package onnx

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
)

// inlineLimit is protobuf's bound on one message. A model that would pass it is
// saved with external data.
const inlineLimit = 1<<31 - 1

// SaveOptions are the options of writing a model.
type SaveOptions struct {
	Workers  int   // recipes that run at the same time; 0 for one per CPU
	Memory   int64 // bytes that running recipes may hold together, one larger job runs alone; 0 for 128 MiB
	External bool  // as in LayoutOptions
	Digest   bool  // compute SHA-256 of the written files
	Sync     bool  // flush the files to the disk before they are renamed; not of Stage, whose set has that option

	Eval *ir.Eval // computes intermediate results; nil for one of its own
	// Keeps written payloads across interruptions, and divides data files between processes; nil for none.
	Journal  ir.Journal
	Progress func(done, total int64) // payload bytes; called from several goroutines; may be nil
}

// defaultMemory is the budget of running recipes where none is given.
const defaultMemory = 128 << 20

// defaults replaces zero values; done releases its resources.
func (o SaveOptions) defaults(dir string) (_ SaveOptions, done func() error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	if o.Eval != nil {
		return o, func() error { return nil }
	}
	o.Eval = ir.NewEval(dir)
	return o, o.Eval.Close
}

// A Plan is a model laid out: every size and offset is known, no payload was read.
type Plan struct {
	model    *ir.Model
	skel     *rope
	data     []*dataFile // none for a model in one file
	metadata int64
	unnamed  func() *rope // skel as for data files of other names
}

// LayoutOptions are the options of laying out a model.
type LayoutOptions struct {
	External bool // payloads go into a data file next to the model, whatever its size

	// DataFiles is the number of data files, with about the same cost of computing their payloads; 0 for one where it
	// is needed. Several are called NAME.data-00001-of-00004, and so on; a file has at least one payload.
	DataFiles int

	// DataSuffix is appended to the name of the model for that of its data file; ".data" if empty.
	DataSuffix string

	// Strip leaves out the doc_string and metadata_props of graphs, functions, nodes, attributes, values and tensors,
	// such as the stack traces of exporters. Those of the model itself stay.
	Strip bool
}

// Layout plans m as the file of the given base name. Models that do not fit into one
// message get a data file called name.data, or as given by o.
func Layout(m *ir.Model, name string, o LayoutOptions) *Plan {
	if !o.External && o.DataFiles == 0 {
		e := &encoder{strip: o.Strip}
		p := &Plan{model: m, skel: e.model(m), metadata: e.metadata}
		p.unnamed = func() *rope { return p.skel }
		// The encoding above has all sizes and no payload: whether the model fits is known before anything is read.
		if p.skel.n <= inlineLimit {
			return p
		}
	}
	suffix := cmp.Or(o.DataSuffix, ".data")
	p := layout(m, o.Strip, &dataFiles{files: []*dataFile{newDataFile(name + suffix)}})
	if len(p.data) == 0 || o.DataFiles <= 1 {
		return p
	}
	// Laid out twice: the costs by which payloads are divided are known after they are laid out in one file.
	d := &dataFiles{of: p.data[0].divide(o.DataFiles)}
	n := 1
	for _, file := range d.of {
		n = max(n, file+1)
	}
	for i := range n {
		d.files = append(d.files, newDataFile(fmt.Sprintf("%s%s-%05d-of-%05d", name, suffix, i+1, n)))
	}
	return layout(m, o.Strip, d)
}

// layout plans m with payloads in data files.
func layout(m *ir.Model, strip bool, d *dataFiles) *Plan {
	e := &encoder{data: d, strip: strip}
	p := &Plan{model: m, skel: e.model(m), metadata: e.metadata}
	if len(d.files[0].parts) > 0 {
		p.data = d.files
	}
	// Encoded only if a journal asks for the digest: the result of an interrupted run holds under any name of the
	// model.
	p.unnamed = func() *rope {
		e := &encoder{data: &dataFiles{of: d.of}, strip: strip}
		for i := range d.files {
			e.data.files = append(e.data.files, newDataFile(strconv.Itoa(i)))
		}
		return e.model(m)
	}
	return p
}

// Metadata is the number of bytes of doc strings and metadata below the model that p has.
func (p *Plan) Metadata() int64 { return p.metadata }

// Size is the number of bytes that all files of p will have.
func (p *Plan) Size() int64 {
	n := p.skel.n
	for _, d := range p.data {
		n += d.size
	}
	return n
}

// A Written is one file that Save has written.
type Written struct {
	Name   string // relative to the model's folder
	Size   int64
	SHA256 string // empty unless requested
}

// Save writes m to path and, where needed, to path.data. The files are replaced
// atomically; after an error, or the end of ctx, existing files are unchanged.
// Memory stays within o.Memory, without the skeleton. Equal models give equal bytes
// whatever the options' Workers and Memory are.
func Save(ctx context.Context, m *ir.Model, path string, o SaveOptions) ([]Written, error) {
	return Layout(m, filepath.Base(path), LayoutOptions{External: o.External}).Write(ctx, path, o)
}

// Write is Save for a model that is laid out already, under the base name of path.
func (p *Plan) Write(ctx context.Context, path string, o SaveOptions) (_ []Written, err error) {
	set := &atomicfile.Set{Sync: o.Sync}
	defer func() { err = errors.Join(err, set.Close()) }()
	ws, err := p.stage(ctx, set, path, o)
	if err != nil {
		return nil, err
	}
	return ws, set.Publish(path)
}

// Stage writes the files of p into a set, which publishes them later: it is Fill, then Seal.
func (p *Plan) Stage(
	ctx context.Context,
	set *atomicfile.Set,
	path string,
	rules Rules,
	o SaveOptions,
) (_ []Written, err error) {
	if err := p.check(rules); err != nil {
		return nil, err
	}
	return p.stage(ctx, set, path, o)
}

func (p *Plan) stage(ctx context.Context, set *atomicfile.Set, path string, o SaveOptions) (_ []Written, err error) {
	s, err := p.fill(ctx, set, path, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Seal(ctx)
}

// A Staged is a model whose payloads are in the files of a set.
type Staged struct {
	w       *writer
	files   []*output
	late    []gap
	missing *Missing
	done    func() error
}

// Fill writes the payloads of p into files of a set. They are a model in set.Folder then, in which values that are
// known late are zeros until Seal; meanwhile, the files are digested and flushed in the background. If o.Journal
// divides the data files, it writes those of this process, and uses those of others.
//
// A model that breaks a rule is an error before any payload is computed. Every model that a command makes is written
// here or by Stage; copies, such as those of pack, unpack and pull, have the bytes of their source.
func (p *Plan) Fill(
	ctx context.Context,
	set *atomicfile.Set,
	path string,
	rules Rules,
	o SaveOptions,
) (*Staged, error) {
	if err := p.check(rules); err != nil {
		return nil, err
	}
	return p.fill(ctx, set, path, o)
}

// Rules are what a written model must hold: opset.Broken has those of ONNX.
type Rules interface {
	Check(m *ir.Model) error
}

func (p *Plan) check(rules Rules) error {
	if rules == nil {
		return nil
	}
	return rules.Check(p.model)
}

func (p *Plan) fill(ctx context.Context, set *atomicfile.Set, path string, o SaveOptions) (_ *Staged, err error) {
	if p.skel.n > inlineLimit {
		return nil, fmt.Errorf(
			"%s: %d bytes cannot go into a data file, and a protobuf message holds %d",
			path,
			p.skel.n,
			inlineLimit,
		)
	}
	dir, err := set.Folder(path)
	if err != nil {
		return nil, err
	}
	o, done := o.defaults(dir)
	s := &Staged{w: &writer{o: o}, done: done}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	// The units of the journal have the layout in their names: an offset alone would fit another model, too.
	if o.Journal != nil {
		s.w.layout = p.digest()
	}
	if s.files, err = s.w.create(ctx, set, p, path); err != nil {
		return nil, err
	}
	return s, s.write(ctx, p)
}

// Close ends the work on files that are not sealed.
func (s *Staged) Close() error {
	for _, f := range s.files {
		f.abandon()
	}
	return s.done()
}

// digest identifies the layout, whatever its name is: all that is known without the payloads.
func (p *Plan) digest() string {
	h := sha256.New()
	for _, q := range p.unnamed().parts {
		h.Write(q.lit)
		fmt.Fprintln(h, q.n)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// write writes the skeleton, then the payloads.
func (s *Staged) write(ctx context.Context, p *Plan) (err error) {
	w, files := s.w, s.files
	pos := int64(0)
	for _, q := range p.skel.parts {
		g := gap{part: q, file: files[0], off: pos}
		switch {
		case q.lit != nil:
			if err := g.file.writeAt(q.lit, pos); err != nil {
				return err
			}
		case q.late != nil:
			s.late = append(s.late, g)
		default:
			w.addGap(g)
		}
		pos += q.n
	}
	for i, d := range p.data {
		end := int64(0)
		for _, q := range d.parts {
			files[i+1].wrote(end, q.off-end) // the hole that aligns q, zeros already
			end = q.off + q.tensor.Bytes()
			w.addGap(gap{part: part{tensor: q.tensor, n: q.tensor.Bytes()}, file: files[i+1], off: q.off})
		}
	}
	if s.missing, err = w.divided(files); err != nil {
		return err
	}
	if err := w.runJobs(ctx); err != nil {
		return err
	}
	// The rest is flushed in the background while the caller measures the result.
	for _, f := range files {
		f.flush()
	}
	return nil
}

// Seal completes the files: it writes the values that are known late, then digests, flushes and closes the files. Where
// data files of other processes are missing, it returns those that this one has written and a *Missing; then the model
// has zeros in place of the missing payloads, and is not to be published.
func (s *Staged) Seal(ctx context.Context) ([]Written, error) {
	var ws []Written
	// Data files before the model file, in which the digest of the source, a late value, is written last.
	for _, f := range s.files[1:] {
		if f.state == stateElsewhere {
			continue
		}
		written, err := s.w.seal(ctx, f, true)
		if err != nil {
			return nil, err
		}
		ws = append(ws, written)
	}
	if s.missing != nil {
		return ws, errors.Join(error(s.missing), s.files[0].Close())
	}
	// The place was laid out with the length of the value, as all offsets after it are written already.
	for _, g := range s.late {
		if err := g.fillLate(ctx); err != nil {
			return nil, err
		}
	}
	written, err := s.w.seal(ctx, s.files[0], false)
	return slices.Insert(ws, 0, written), err
}

func (g gap) fillLate(ctx context.Context) error {
	s, err := g.part.late(ctx)
	if err != nil {
		return err
	}
	if int64(len(s)) != g.part.n {
		return fmt.Errorf("a late value has %d bytes, its place %d", len(s), g.part.n)
	}
	return g.file.writeAt([]byte(s), g.off)
}

// Same plans a copy of f under another name. Payloads in data files go to one of the
// new name; the bytes of a model in one file stay as they are.
func (f *File) Same(name string) *Plan {
	if f.External() {
		return Layout(f.Model, name, LayoutOptions{External: true})
	}
	p := &Plan{model: f.Model, skel: &rope{}, metadata: f.metadata}
	p.unnamed = func() *rope { return p.skel }
	p.skel.gap(part{chunk: chunk{src: f.main, n: f.main.size}, n: f.main.size})
	return p
}

// Model is the model that p lays out.
func (p *Plan) Model() *ir.Model { return p.model }

// Paths are the files that p becomes if the model is called path.
func (p *Plan) Paths(path string) []string {
	paths := []string{path}
	for _, d := range p.data {
		paths = append(paths, filepath.Join(filepath.Dir(path), d.name))
	}
	return paths
}

// Sizes are the sizes of the files that Paths names.
func (p *Plan) Sizes() []int64 {
	sizes := []int64{p.skel.n}
	for _, d := range p.data {
		sizes = append(sizes, d.size)
	}
	return sizes
}
