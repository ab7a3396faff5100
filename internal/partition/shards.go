package partition

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/partition"
)

// WriteShards divides the pairs of weights of the model at path over a number of ranks, and writes
// NAME.rank0.segment1.onnx etc. and NAME.shards.json into dir, atomically like Write, with memory that does not depend
// on the size of weights.
func WriteShards(ctx context.Context, path, dir string, ranks int, s onnx.SaveOptions) (_ *partition.Split, err error) {
	w, err := newWriter(ctx, path, dir, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	c := &shardWriter{writer: w, ranks: int64(ranks), storedBytes: map[string]int64{}}
	if err := c.plan(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := c.write(ctx); err != nil {
		return nil, err
	}
	manifest, err := w.publish(ctx, ".shards.json", c.manifest)
	return &partition.Split{Manifest: manifest, Shards: c.manifest}, err
}

// A shardWriter writes shards.
type shardWriter struct {
	*writer
	ranks       int64
	cutter      *cutter
	divisions   []*division
	declared    map[string]*ir.Type
	manifest    *partition.ShardManifest
	storedBytes map[string]int64 // bytes of each constant of the model in all files
	modelBytes  map[string]int64 // bytes of each constant that the model needs
	gathered    map[string]int   // axes of outputs of the model that are divided
}

// plan finds the divisions.
func (w *shardWriter) plan(ctx context.Context) error {
	m := w.source.Model
	o, err := newOutline(m.Graph)
	if err != nil {
		return err
	}
	t, err := typesOf(ctx, m, dataset.Random{})
	if err != nil {
		return err
	}
	w.cutter = &cutter{outline: o, types: t}
	// For its bars: cuts that values without a declarable type cross.
	if _, err := w.cutter.line("weights"); err != nil {
		return err
	}
	w.manifest = &partition.ShardManifest{
		Version: ManifestVersion,
		Model:   filepath.Base(w.source.Path),
		Ranks:   int(w.ranks),
		Divided: []partition.DividedWeight{},
	}
	w.declared, w.gathered, w.modelBytes = map[string]*ir.Type{}, map[string]int{}, map[string]int64{}
	for _, h := range o.hops() {
		w.declared[h.value.Name] = t.declaration(h.value)
	}
	for _, v := range o.part([]int{0, len(o.nodes)}, 0).consts.list {
		w.modelBytes[v.Name] = v.Const.Bytes()
		w.manifest.Weights.Model += v.Const.Bytes()
	}
	var reasons []string
	w.divisions, w.manifest.Refused = w.cutter.divisible(w.ranks)
	for _, r := range w.manifest.Refused {
		reasons = append(reasons, fmt.Sprintf("%s: %s", r.Weight, r.Reason))
	}
	switch {
	case len(w.divisions) > 0:
	case len(reasons) > 0:
		return errors.New(strings.Join(reasons, "; "))
	default:
		return errors.New(
			"no pairs of products with column-parallel and row-parallel weights: the model cannot be divided",
		)
	}
	w.describe()
	return nil
}

// divisible are the divisions over a number of devices, and the refused ones.
func (c *cutter) divisible(devices int64) (list []*division, refused []partition.Refusal) {
	for _, d := range c.divisions() {
		if p := d.pair(devices); p.Refused != "" {
			refused = append(refused, partition.Refusal{Weight: p.Row.Weight, Reason: p.Refused})
			continue
		}
		list = append(list, d)
	}
	return list, refused
}

// describe adds the divided weights and outputs to the manifest.
func (w *shardWriter) describe() {
	known := map[string]bool{}
	for _, d := range w.divisions {
		for _, n := range append([]*ir.Node{d.row}, d.nodes...) {
			for i, of := range d.inputSplits[n] {
				v := n.Input(i)
				if len(of.blocks) == 0 || v == nil || v.Const == nil || known[v.Name] {
					continue
				}
				known[v.Name] = true
				w.manifest.Weights.Divided += v.Const.Bytes()
				w.manifest.Divided = append(
					w.manifest.Divided,
					partition.DividedWeight{Name: v.Name, Axis: of.axis, Blocks: of.blocks, Lengths: w.lengths(d, of), Bytes: v.Const.Bytes()},
				)
			}
		}
		for v, of := range d.values {
			if slices.Contains(w.cutter.graph.Outputs, v) {
				w.gathered[v.Name] = of.axis
			}
		}
	}
}

func (w *shardWriter) lengths(d *division, of split) []int64 {
	list := make([]int64, w.ranks)
	for rank := range list {
		s := sharder{division: d, rank: int64(rank), ranks: w.ranks}
		list[rank] = s.length(of)
	}
	return list
}

// write writes the files of all segments, rank by rank, and fills the manifest.
func (w *shardWriter) write(ctx context.Context) error {
	// A segment ends with each reduction, and the last one with the outputs of the model.
	for k := 0; k <= len(w.divisions); k++ {
		seg := partition.Segment{Shards: []partition.Shard{}}
		for rank := range w.ranks {
			shard, err := w.shard(ctx, k, rank)
			if err != nil {
				return err
			}
			if shard != nil {
				seg.Shards = append(seg.Shards, *shard)
			}
		}
		if k < len(w.divisions) {
			p := w.divisions[k].port(w.divisions[k].row.Outputs[0], []int{0, len(w.cutter.nodes)})
			seg.Reductions = []partition.Reduction{{Name: p.Name, Operation: "sum", Type: p.Type, Bytes: p.Bytes}}
		}
		if len(seg.Shards) > 0 {
			w.manifest.Segments = append(w.manifest.Segments, seg)
		}
	}
	for _, v := range w.cutter.graph.Outputs {
		w.manifest.Outputs = append(w.manifest.Outputs, w.result(v.Name))
	}
	w.account()
	return nil
}

// account sums the bytes of constants in all files.
func (w *shardWriter) account() {
	b := &w.manifest.Weights
	// Constants of the files that the model does not have are sizes of the ranks.
	for name, stored := range w.storedBytes {
		if b.Stored += stored; w.modelBytes[name] == 0 {
			b.Added += stored
		}
	}
	for name, whole := range w.modelBytes {
		if stored := w.storedBytes[name]; stored > 0 {
			b.Replicated += stored - whole
		} else {
			b.Added -= whole
		}
	}
}

// result is the origin of an output of the model.
func (w *shardWriter) result(name string) partition.Result {
	if w.reduced(name) {
		return partition.Result{Name: name, Reduced: true}
	}
	r := partition.Result{Name: name}
	axis, concat := w.gathered[name]
	for rank := range w.ranks {
		if file := w.producer(name, int(rank)); concat {
			r.Concat, r.Axis = append(r.Concat, file), axis
		} else if rank == 0 {
			r.From = file
		}
	}
	return r
}

func (w *shardWriter) reduced(name string) bool {
	return slices.ContainsFunc(w.manifest.Segments, func(s partition.Segment) bool {
		return slices.ContainsFunc(s.Reductions, func(r partition.Reduction) bool { return r.Name == name })
	})
}

// producer is the file of a rank that has an output of this name.
func (w *shardWriter) producer(name string, rank int) string {
	for _, s := range w.manifest.Segments {
		for _, shard := range s.Shards {
			if shard.Rank == rank && slices.Contains(shard.Outputs, name) {
				return shard.File
			}
		}
	}
	return ""
}

// shard writes the file of one rank and segment, from its own reading of the model; it returns nil if the rank has no
// nodes there.
func (w *shardWriter) shard(ctx context.Context, k int, rank int64) (_ *partition.Shard, err error) {
	// Each rank and segment rewrites a reading of its own, which shares nothing with the others; payloads stay in
	// the file.
	f, err := onnx.OpenContext(ctx, w.source.Path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	origin, done, err := w.extract(f.Model, k, rank)
	if done || err != nil {
		return nil, err
	}
	file := fmt.Sprintf("%s.rank%d.segment%d.onnx", w.name, rank, k+1)
	g := f.Model.Graph
	m := &partition.Shard{Rank: int(rank), File: file, Inputs: []partition.Operand{}, Outputs: []string{}}
	for _, v := range g.Consts() {
		name := v.Name
		if whole := origin[v]; whole != nil {
			name = whole.Name
		}
		w.storedBytes[name] += v.Const.Bytes()
		m.Weights += v.Const.Bytes()
	}
	for _, v := range g.Inputs {
		if v.Const == nil {
			reduced := w.reduced(v.Name)
			from := ""
			if !reduced {
				from = w.producer(v.Name, int(rank))
			}
			m.Inputs = append(m.Inputs, partition.Operand{Name: v.Name, From: from, Reduced: reduced})
		}
	}
	for _, v := range g.Outputs {
		m.Outputs = append(m.Outputs, v.Name)
	}
	m.Parts, err = w.file(ctx, f, file, m.Weights, w.manifest.Weights.Model*w.ranks)
	return m, err
}

// extract rewrites a reading of the model to the part of a rank in segment k, and reports whether it has no nodes.
func (w *shardWriter) extract(m *ir.Model, k int, rank int64) (origin map[*ir.Value]*ir.Value, empty bool, err error) {
	o, err := newOutline(m.Graph)
	if err != nil {
		return nil, false, err
	}
	c := &cutter{outline: o, types: w.cutter.types}
	if _, err := c.line("weights"); err != nil {
		return nil, false, err
	}
	// The divisions refer to nodes of the reading that they were found in. They depend on the graph alone, so that
	// those of each reading are the same.
	divided, _ := c.divisible(w.ranks)
	if len(divided) != len(w.divisions) || len(o.nodes) != len(w.cutter.nodes) {
		return nil, false, errChanged
	}
	m.IRVersion = max(m.IRVersion, unlistedConstants)
	origin = map[*ir.Value]*ir.Value{}
	var rows []*ir.Node
	for _, d := range divided {
		(&sharder{d, rank, w.ranks, origin}).apply()
		rows = append(rows, d.row)
	}
	w.results(m.Graph, rows, rank)
	// Nodes were inserted and removed, which moves the positions of the rows.
	if o, err = newOutline(m.Graph); err != nil {
		return nil, false, err
	}
	starts := []int{0}
	for _, n := range rows {
		starts = append(starts, o.at[n]+1)
	}
	if starts = append(starts, len(o.nodes)); starts[k] == starts[k+1] {
		return nil, true, nil
	}
	return origin, false, o.extract(starts, w.declared, k)
}

// unlistedConstants is the first IR version in which initializers need not be inputs of the graph.
const unlistedConstants = 4

// results makes the partial sums outputs of the graph. Ranks other than 0 have no other outputs but those that are
// concatenated, and nodes that compute none of them are removed.
func (w *shardWriter) results(g *ir.Graph, rows []*ir.Node, rank int64) {
	var out ordered[*ir.Value]
	for _, v := range g.Outputs {
		if _, gathered := w.gathered[v.Name]; gathered || rank == 0 {
			out.add(v)
		}
	}
	for _, n := range rows {
		out.add(n.Outputs[0])
	}
	g.SetOutputs(out.list...)
	needed := map[*ir.Node]bool{}
	// Before the graph is cut into segments: a rank without nodes in a segment has no file there.
	open := slices.Clone(out.list)
	for len(open) > 0 {
		n := open[len(open)-1].Producer()
		open = open[:len(open)-1]
		if n == nil || needed[n] {
			continue
		}
		needed[n] = true
		for v := range reads(n) {
			open = append(open, v)
		}
	}
	for n := g.Last(); n != nil; {
		before := n.Prev()
		if !needed[n] {
			n.Remove()
		}
		n = before
	}
}
