package dataset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

func (t *table) len() int { return int(t.n) }

func (t *table) size(want int) int {
	if t.fixed > 0 {
		return int(t.fixed)
	}
	return want
}

func (t *table) bindings() []binding {
	all := slices.Concat(t.inputs, t.outputs)
	if t.labels != nil {
		all = append(all, *t.labels)
	}
	return all
}

func (t *table) bytes(n int) int64 {
	total := int64(0)
	for _, b := range t.bindings() {
		total += b.held(int64(n))
		if b.relayout.moves() {
			total += int64(n) * ir.Spec{DType: b.conversion.from, Shape: b.stored}.Bytes()
		}
		if b.conversion.from != b.conversion.to || b.conversion.hasScaling() {
			total += int64(n) * ir.Spec{DType: b.conversion.to, Shape: b.shape}.Bytes()
		}
	}
	return total
}

func (t *table) transient(n int) (total int64) {
	for _, b := range t.bindings() {
		total += b.column.transient(int64(n))
	}
	return total
}

func (t *table) resident() int64 {
	total := int64(0)
	for _, b := range t.bindings() {
		if m, ok := b.column.(*sparseMatrix); ok {
			total += m.resident
		}
	}
	return total
}

func (t *table) random() error {
	for _, b := range t.bindings() {
		if err := b.random(t.opts.TempDir); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) bytesRead() int64 { return t.samples.read.Load() }

func (t *table) labelled() bool { return t.labels != nil }

func (t *table) recorded() []string {
	out := []string{}
	for _, b := range t.outputs {
		out = append(out, b.Name)
	}
	return out
}

func (t *table) close() error { return t.samples.close() }

func (t *table) load(index []int, memory *buffers) (func() (*Batch, error), error) {
	var finish []func(*Batch) error
	put := func(b binding, into func(*Batch, *ir.Array)) error {
		arrays, err := b.load(index, memory)
		finish = append(finish, func(to *Batch) error {
			a, err := b.convert(arrays, index, memory)
			if err == nil {
				into(to, a)
			}
			return err
		})
		return err
	}
	var errs []error
	for _, b := range t.inputs {
		errs = append(errs, put(b, func(to *Batch, a *ir.Array) { to.Inputs[b.Name] = a }))
	}
	for _, b := range t.outputs {
		errs = append(errs, put(b, func(to *Batch, a *ir.Array) { to.Outputs[b.Name] = a }))
	}
	if t.labels != nil {
		errs = append(errs, put(*t.labels, func(to *Batch, a *ir.Array) { to.Labels = a }))
	}
	return func() (*Batch, error) { return t.finish(finish, len(index), memory) }, errors.Join(errs...)
}

func (t *table) finish(parts []func(*Batch) error, n int, memory *buffers) (*Batch, error) {
	b := &Batch{Inputs: map[string]*ir.Array{}, Outputs: map[string]*ir.Array{}}
	for _, part := range parts {
		if err := part(b); err != nil {
			return nil, err
		}
	}
	b.Attended = t.tokenMask(b, memory)
	if ids := b.Inputs[t.ids]; ids != nil && len(ids.Shape) == 2 {
		b.Targets = t.targets(b, 0, ids.Shape[1], memory)
	}
	return b, t.fill(b, int64(n), memory)
}

// convert converts loaded samples to the model's type and shape.
func (b *binding) convert(arrays func() (*ir.Array, error), index []int, memory *buffers) (*ir.Array, error) {
	a, err := arrays()
	if err != nil {
		return nil, err
	}
	a, err = b.conversion.apply(b.relayout.apply(a, b.stored, memory), memory)
	var m *rangeError
	if errors.As(err, &m) {
		return nil, fmt.Errorf("%s: sample %d: %w, the type of %q; give values in its range", b.row().Name,
			// The error counts elements of the batch.
			index[m.at/elems(b.shape)], m, b.Name)
	}
	if err != nil {
		return nil, err
	}
	a.Shape = b.shapeOf(int64(len(index)))
	return a, nil
}

// shapeOf is the shape of the input for n samples.
func (b *binding) shapeOf(n int64) []int64 {
	if !b.batched {
		return slices.Clone(b.shape)
	}
	return append([]int64{n}, b.shape...)
}

// fill adds the inputs that are not in the data, for n samples.
func (t *table) fill(b *Batch, n int64, memory *buffers) error {
	known := newSizes(t.opts.Dims)
	for _, b := range t.inputs {
		known.record(b.dims(t.opts.Dims), b.shapeOf(n))
	}
	if t.derive != nil {
		if err := t.derive.fill(b, n, t.tokens(), 0, memory); err != nil {
			return err
		}
	}
	return known.fill(b.Inputs, t.fills, t.opts.Fill, memory)
}
