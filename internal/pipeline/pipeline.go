package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	results "github.com/mcompress/mcompress/report/partition"
)

// Options configure a pipeline.
type Options struct {
	Workers int
	Limits  memory.Limits // of each file's run
	Exact   bool          // without fusions, which depend on what is in one file
	Digests bool          // compares the digests of files with those of the manifest, not only their sizes
	// Start opens a device; nil for one in this process.
	Start func(context.Context, Settings) (Device, error)
}

// A Pipeline is a session of the stages or shards of a model. Several goroutines may use it: each stage runs one
// micro-batch at a time, so that n concurrent runs keep n stages busy.
type Pipeline struct {
	manifest *results.ShardManifest
	devices  []*worker
	workers  map[string]*worker // by file
	inputs   []op.Port
	outputs  []op.Port
}

// A worker is a device and its statistics.
type worker struct {
	mu     sync.Mutex
	device Device
	stat   results.Device
}

// Open opens the files of a manifest. Stages have a device each, shards a device for each rank.
func Open(ctx context.Context, manifest string, o Options) (_ *Pipeline, err error) {
	m, err := partition.ReadManifest(manifest)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{manifest: m, workers: map[string]*worker{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if o.Start == nil {
		o.Start = func(ctx context.Context, s Settings) (Device, error) { return openLocal(ctx, s) }
	}
	folder := filepath.Dir(manifest)
	if err := p.ports(ctx, folder); err != nil {
		return nil, err
	}
	if err := partition.CompareFiles(ctx, m, folder, o.Digests); err != nil {
		return nil, err
	}
	for _, files := range p.placement() {
		d, err := o.Start(ctx, Settings{folder, files, o.Workers, o.Limits, o.Exact})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.deviceName(files), err)
		}
		w := &worker{device: d, stat: results.Device{Name: p.deviceName(files)}}
		p.devices = append(p.devices, w)
		for _, file := range files {
			p.workers[file] = w
		}
	}
	return p, nil
}

// placement is the files of each device.
func (p *Pipeline) placement() [][]string {
	if p.manifest.Ranks == 1 {
		var list [][]string
		for _, s := range p.manifest.Segments {
			for _, shard := range s.Shards {
				list = append(list, []string{shard.File})
			}
		}
		return list
	}
	list := make([][]string, p.manifest.Ranks)
	for _, s := range p.manifest.Segments {
		for _, shard := range s.Shards {
			list[shard.Rank] = append(list[shard.Rank], shard.File)
		}
	}
	return slices.DeleteFunc(list, func(files []string) bool { return len(files) == 0 })
}

func (p *Pipeline) deviceName(files []string) string {
	if p.manifest.Ranks == 1 {
		return files[0]
	}
	for _, s := range p.manifest.Segments {
		for _, shard := range s.Shards {
			if shard.File == files[0] {
				return fmt.Sprintf("rank %d", shard.Rank)
			}
		}
	}
	return ""
}

// ports reads the declarations of the inputs and outputs of the whole model from the files.
func (p *Pipeline) ports(ctx context.Context, folder string) error {
	types, given := map[string]*ir.Type{}, map[string]bool{}
	for _, s := range p.manifest.Segments {
		for _, shard := range s.Shards {
			f, err := onnx.OpenContext(ctx, filepath.Join(folder, shard.File))
			if err != nil {
				return err
			}
			// The first declaration of a name counts: the shard that reads an input of the model, or the first stage
			// that computes an output.
			for _, v := range slices.Concat(f.Model.Graph.Inputs, f.Model.Graph.Outputs) {
				if types[v.Name] == nil {
					types[v.Name] = v.Type
				}
			}
			if err := f.Close(); err != nil {
				return err
			}
			for _, in := range shard.Inputs {
				// Sums of a segment are not inputs of the model either, although no file makes them.
				if in.From == "" && !in.Reduced && !given[in.Name] {
					given[in.Name] = true
					p.inputs = append(p.inputs, op.Port{Name: in.Name, Type: types[in.Name]})
				}
			}
		}
	}
	for _, o := range p.manifest.Outputs {
		p.outputs = append(p.outputs, op.Port{Name: o.Name, Type: types[o.Name]})
	}
	return nil
}

// Inputs are the inputs of the model that nodes read.
func (p *Pipeline) Inputs() []op.Port { return p.inputs }

// Outputs are the outputs of the model. The types of concatenated ones are those of a part.
func (p *Pipeline) Outputs() []op.Port { return p.outputs }

// Stats is the work of each device so far.
func (p *Pipeline) Stats() []results.Device {
	list := make([]results.Device, len(p.devices))
	for i, w := range p.devices {
		w.mu.Lock()
		list[i] = w.stat
		w.mu.Unlock()
	}
	return list
}

// Close ends all devices.
func (p *Pipeline) Close() error {
	var errs []error
	for _, w := range p.devices {
		errs = append(errs, w.device.Close())
	}
	return errors.Join(errs...)
}

// A micro-batch is one run: the values that files have computed, by file, and the sums.
type microBatch struct {
	outputs map[string]map[string]*ir.Array
	sums    map[string]*ir.Array
}

// Run computes the outputs for the inputs. The ranks of a segment run at the same time.
func (p *Pipeline) Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error) {
	// The file "" makes the inputs of the model, as the manifest has it for Port.From.
	b := &microBatch{outputs: map[string]map[string]*ir.Array{"": in}, sums: map[string]*ir.Array{}}
	for _, s := range p.manifest.Segments {
		if err := p.segment(ctx, s, b); err != nil {
			return nil, err
		}
	}
	out := map[string]*ir.Array{}
	for _, o := range p.manifest.Outputs {
		if len(fetch) > 0 && !slices.Contains(fetch, o.Name) {
			continue
		}
		var err error
		if out[o.Name], err = b.output(o); err != nil {
			return nil, fmt.Errorf("output %q: %w", o.Name, err)
		}
	}
	return out, nil
}

func (p *Pipeline) segment(ctx context.Context, s results.Segment, b *microBatch) error {
	replies, errs := make([]*Reply, len(s.Shards)), make([]error, len(s.Shards))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i, shard := range s.Shards {
		running.Go(func() {
			if replies[i], errs[i] = p.shard(ctx, shard, b); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", shard.File, errs[i])
				cancel(errs[i])
			}
		})
	}
	running.Wait()
	// When one shard fails the others are canceled, and their errors only say so.
	if err := errors.Join(errs...); err != nil {
		return context.Cause(ctx) // the first one, or that of the caller
	}
	// After all shards of the segment have ended, as they read made without a lock.
	for i, shard := range s.Shards {
		b.outputs[shard.File] = replies[i].Outputs
	}
	for _, r := range s.Reductions {
		var parts []*ir.Array
		for _, shard := range s.Shards {
			parts = append(parts, b.outputs[shard.File][r.Name])
		}
		sum, err := allReduce(parts)
		if err != nil {
			return fmt.Errorf("reduction of %q: %w", r.Name, err)
		}
		b.sums[r.Name] = sum
	}
	return nil
}

// shard runs one file of a segment.
func (p *Pipeline) shard(ctx context.Context, s results.Shard, b *microBatch) (*Reply, error) {
	in := map[string]*ir.Array{}
	for _, o := range s.Inputs {
		v := b.outputs[o.From][o.Name]
		if o.Reduced {
			v = b.sums[o.Name]
		}
		if v == nil {
			return nil, fmt.Errorf("input %q is missing", o.Name)
		}
		in[o.Name] = v
	}
	r, err := p.workers[s.File].runFile(ctx, s.File, in)
	if err != nil {
		return nil, err
	}
	for _, name := range s.Outputs {
		if r.Outputs[name] == nil {
			return nil, fmt.Errorf("output %q is missing", name)
		}
	}
	return r, nil
}

// runFile runs a file when the device is free.
func (w *worker) runFile(ctx context.Context, file string, in map[string]*ir.Array) (*Reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r, err := w.device.Run(ctx, file, in)
	if err != nil {
		return nil, err
	}
	w.stat.Runs++
	w.stat.Seconds += r.Seconds
	w.stat.Bytes += r.Bytes
	w.stat.Peak = max(w.stat.Peak, r.Peak)
	return r, nil
}

func (b *microBatch) output(o results.Result) (*ir.Array, error) {
	switch {
	case o.Reduced:
		return b.sums[o.Name], nil
	case len(o.Concat) == 0:
		return b.outputs[o.From][o.Name], nil
	}
	var parts []*ir.Array
	for _, file := range o.Concat {
		parts = append(parts, b.outputs[file][o.Name])
	}
	return allGather(parts, o.Axis)
}

// allReduce is the sum of tensors of one type. Elements are added in float64, in the order of the ranks, and rounded
// once.
func allReduce(parts []*ir.Array) (*ir.Array, error) {
	first := parts[0]
	for _, p := range parts {
		if p.Kind != ir.Dense || p.DType != first.DType || !slices.Equal(p.Shape, first.Shape) {
			return nil, errors.New("the ranks have values of different types")
		}
	}
	if err := number.Check(first.DType); err != nil {
		return nil, err
	}
	sum, more := make([]float64, first.Elems()), make([]float64, first.Elems())
	for _, p := range parts {
		number.Read(more, p, 0)
		for i, x := range more {
			sum[i] += x
		}
	}
	out := ir.NewArray(first.DType, first.Shape...)
	number.Write(out, 0, sum)
	return out, nil
}

// allGather concatenates tensors along an axis.
func allGather(parts []*ir.Array, axis int) (*ir.Array, error) {
	shape := slices.Clone(parts[0].Shape)
	if axis >= len(shape) || parts[0].DType.Bits() < 8 {
		return nil, errors.New("the parts have no such axis")
	}
	shape[axis] = 0
	for _, p := range parts {
		if p.DType != parts[0].DType || len(p.Shape) != len(shape) || !slices.Equal(p.Shape[:axis], shape[:axis]) ||
			!slices.Equal(p.Shape[axis+1:], shape[axis+1:]) {
			return nil, errors.New("the ranks have parts of different types")
		}
		shape[axis] += p.Shape[axis]
	}
	// Row-major: what precedes the axis are rows, and each row of the result has those of all parts one after the
	// other.
	out := ir.NewArray(parts[0].DType, shape...)
	rows := ir.Spec{Shape: shape[:axis]}.Elems()
	at := 0
	for r := range rows {
		for _, p := range parts {
			n := int64(len(p.Data)) / rows
			at += copy(out.Data[at:], p.Data[r*n:(r+1)*n])
		}
	}
	return out, nil
}
