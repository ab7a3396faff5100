package onnx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
)

// A gap is a place in a file for a payload.
type gap struct {
	part part
	file *output
	off  int64
}

// A job fills gaps: one by copying, or all outputs of a recipe by running it once.
type job struct {
	recipe *ir.Recipe
	gaps   []gap
	size   int64 // bytes written
}

// A writer runs jobs in parallel under a byte budget.
type writer struct {
	o      SaveOptions
	layout string // see Plan.digest
	jobs   []*job
	byRec  map[*ir.Recipe]*job
	done   atomic.Int64
	total  int64 // bytes of all gaps
}

func (w *writer) addGap(g gap) {
	w.total += g.part.n
	var r *ir.Recipe
	if g.part.tensor != nil {
		if o, ok := g.part.tensor.Source.(ir.Output); ok {
			r = o.Of
		}
	}
	// A recipe with several outputs, such as quantized values, scales and zero points, runs once and fills all their
	// gaps.
	if j := w.byRec[r]; r != nil && j != nil {
		j.gaps, j.size = append(j.gaps, g), j.size+g.part.n
		return
	}
	j := &job{recipe: r, gaps: []gap{g}, size: g.part.n}
	w.jobs = append(w.jobs, j)
	if r != nil {
		if w.byRec == nil {
			w.byRec = map[*ir.Recipe]*job{}
		}
		w.byRec[r] = j
	}
}

// cost is the bytes a job holds.
func (j *job) cost() int64 {
	if j.recipe != nil && j.recipe.View == nil {
		return j.recipe.Work
	}
	return 2 * ir.CopyBuffer
}

// runJobs fills every gap. The largest jobs start first, so that none is left over at the
// end for one worker alone; the others go in file order, so that the digest can follow.
func (w *writer) runJobs(ctx context.Context) error {
	// A quarter of the work of a worker: what remains at the end is short next to it.
	large := w.total / int64(4*w.o.Workers)
	slices.SortStableFunc(w.jobs, func(a, b *job) int {
		// The sort is stable, so that the others stay in the order of the file.
		if a.size <= large && b.size <= large {
			return 0
		}
		return cmp.Compare(b.size, a.size)
	})
	budget := semaphore.NewWeighted(w.o.Memory)
	parent := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(w.o.Workers)
	for _, j := range w.jobs {
		// A job above the budget gets all of it and runs alone; it is never refused.
		n := min(j.cost(), w.o.Memory)
		if budget.Acquire(ctx, n) != nil {
			break // the context ended: Wait has the reason
		}
		g.Go(func() error {
			defer budget.Release(n)
			return w.once(ctx, j)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(parent)
}

// once fills the gaps of j, unless an interrupted run did.
func (w *writer) once(ctx context.Context, j *job) error {
	if w.o.Journal == nil {
		return w.fill(ctx, j)
	}
	// Offset and size identify a gap within a layout, whose digest is in the unit of its file.
	unit := fmt.Sprintf("payload %s %d %d", j.gaps[0].file.unit, j.gaps[0].off, j.size)
	known, ok := w.o.Journal.Result(unit)
	if ok {
		want := make([]byte, known[0].Size())
		if err := ir.ReadFull(known[0], want, 0); err != nil {
			return err
		}
		// A power failure may have lost what was written before the result was.
		if sums, err := j.sums(ctx); err != nil {
			return err
		} else if bytes.Equal(sums, want) {
			for _, g := range j.gaps {
				g.file.wrote(g.off, g.part.n)
				w.progress(g.part.n)
			}
			return nil
		}
	}
	if err := w.fill(ctx, j); err != nil || ok {
		return err
	}
	sums, err := j.sums(ctx)
	if err != nil {
		return err
	}
	_, err = w.o.Journal.Add(ctx, unit, sums)
	return err
}

// A Missing is the error of a model of which other processes write data files that are not known yet. It is an
// *ir.Elsewhere.
type Missing struct {
	file  *ir.Elsewhere
	holes map[*ir.Tensor]bool // of the plan, whose payloads in the model file are zeros
}

// Error names the unit of a file.
func (m *Missing) Error() string { return m.file.Error() }
func (m *Missing) Unwrap() error { return m.file }

// Has reports whether the payload of a tensor of the plan is not in the model file yet. A nil m has none.
func (m *Missing) Has(t *ir.Tensor) bool { return m != nil && m.holes[t] }

// divided leaves the payloads of this process, and writes those in the model file whose recipes another one has run. If
// a file is missing, recipes of the model file alone do not run.
func (w *writer) divided(files []*output) (missing *Missing, err error) {
	for _, f := range files[1:] {
		if f.state == stateElsewhere {
			missing = &Missing{&ir.Elsewhere{Unit: f.unit}, map[*ir.Tensor]bool{}}
		}
	}
	var mine []*job
	for _, j := range w.jobs {
		f := j.file(files[0])
		for _, g := range j.gaps {
			if g.file != f {
				f.inline = append(f.inline, g)
			}
		}
		// Recipes of the model file alone wait for the process that has all data files, as others would run them in
		// vain.
		if f.state == stateHere && (f != files[0] || missing == nil || j.recipe == nil) {
			mine = append(mine, j)
			continue
		}
		w.total -= j.size
		for _, g := range j.gaps {
			if g.file == files[0] && f.state != stateWritten {
				missing.holes[g.part.tensor] = true
			}
		}
	}
	w.jobs = mine
	for _, f := range files[1:] {
		if f.state == stateWritten {
			err = errors.Join(err, f.writeInline())
		}
	}
	return missing, err
}

// file is the data file of j; the model file if it has none.
func (j *job) file(model *output) *output {
	for _, g := range j.gaps {
		if g.file != model {
			return g.file
		}
	}
	return model
}

// seal completes a file. A journal has then the digest of a data file, and the payloads in the model file that are
// computed with it.
func (w *writer) seal(ctx context.Context, f *output, data bool) (Written, error) {
	if f.state == stateWritten {
		sum := make([]byte, f.result[0].Size())
		if err := ir.ReadFull(f.result[0], sum, 0); err != nil {
			return Written{}, err
		}
		return Written{Name: filepath.Base(f.Path), Size: f.size, SHA256: string(sum)}, f.Close()
	}
	done, err := f.seal()
	if err != nil || w.o.Journal == nil || !data {
		return done, err
	}
	if _, known := w.o.Journal.Result(f.unit); !known { // known is that of a file that was lost
		inline, err := f.readInline()
		if err != nil {
			return done, err
		}
		if _, err := w.o.Journal.Add(ctx, f.unit, []byte(done.SHA256), inline); err != nil {
			return done, err
		}
	}
	// In this order: an incomplete file has the size of a complete one, so that only one whose result is recorded
	// may have its name.
	return done, atomicfile.Keep(f.begun, f.kept)
}

// sums are the checksums of what is in the gaps, CRC-32C.
func (j *job) sums(ctx context.Context) (sums []byte, err error) {
	for _, g := range j.gaps {
		h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		if err := ir.Copy(ctx, h, io.NewSectionReader(g.file, g.off, g.part.n), g.part.n); err != nil {
			return nil, g.file.Fail(err)
		}
		sums = h.Sum(sums)
	}
	return sums, nil
}

func (w *writer) fill(ctx context.Context, j *job) error {
	if j.recipe == nil || j.recipe.View != nil {
		for _, g := range j.gaps {
			if err := w.copy(ctx, g); err != nil {
				return err
			}
		}
		return nil
	}
	out := make([]io.Writer, len(j.recipe.Out))
	for i := range out {
		out[i] = io.Discard
	}
	for _, g := range j.gaps {
		i := g.part.tensor.Source.(ir.Output).Index
		// A tensor that is stored at several places is computed once.
		if out[i] != io.Discard {
			out[i] = io.MultiWriter(out[i], w.to(g))
			continue
		}
		out[i] = w.to(g)
	}
	return w.o.Eval.Run(ctx, j.recipe, out)
}

func (w *writer) copy(ctx context.Context, g gap) error {
	if c := g.part.chunk; c.src != nil {
		return ir.Copy(ctx, w.to(g), io.NewSectionReader(c.src, c.off, c.n), c.n)
	}
	t := g.part.tensor
	r, err := w.o.Eval.Open(ctx, t)
	if err != nil {
		return err
	}
	if err := ir.Copy(ctx, w.to(g), r, g.part.n); err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return nil
}

// to is where a gap's bytes go; it counts them.
func (w *writer) to(g gap) io.Writer { return &place{w, g.file, g.off, g.off + g.part.n} }

type place struct {
	w        *writer
	file     *output
	off, end int64
}

func (p *place) Write(b []byte) (int, error) {
	if int64(len(b)) > p.end-p.off {
		return 0, ir.Bugf("%s: a payload is longer than its place", filepath.Base(p.file.Path))
	}
	if err := p.file.writeAt(b, p.off); err != nil {
		return 0, err
	}
	p.off += int64(len(b))
	p.w.progress(int64(len(b)))
	return len(b), nil
}

// progress reports n more bytes.
func (w *writer) progress(n int64) {
	done := w.done.Add(n)
	if w.o.Progress != nil {
		w.o.Progress(done, w.total)
	}
}
