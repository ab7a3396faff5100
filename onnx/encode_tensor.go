package onnx

import (
	"strconv"

	"github.com/mcompress/mcompress/ir"
)

// dataFiles are the files for payloads that are stored outside of the model file.
type dataFiles struct {
	files []*dataFile
	of    map[any]int // the file of a unit, see unitOf; the first one for others
}

// A dataFile collects the payloads of one file.
type dataFile struct {
	name  string // location, relative to the model
	size  int64
	parts []placed
	at    map[*ir.Tensor]int64
}

type placed struct {
	tensor *ir.Tensor
	off    int64
}

const (
	// externalFrom is the smallest payload that is written to the data file; ONNX's own
	// tools use the same bound.
	externalFrom = 1 << 10
	// Large payloads start on a page, so that runtimes can map them; small ones on
	// a cache line.
	pageFrom  = 1 << 20
	pageAlign = 4 << 10
	lineAlign = 64
)

// place assigns a file and an offset in it to t.
func (d *dataFiles) place(t *ir.Tensor) (*dataFile, int64) {
	f := d.files[d.of[unitOf(t)]]
	return f, f.place(t)
}

// place assigns an offset to t; the same tensor is stored once.
func (d *dataFile) place(t *ir.Tensor) int64 {
	if off, ok := d.at[t]; ok {
		return off
	}
	align := int64(lineAlign)
	if t.Bytes() >= pageFrom {
		align = pageAlign
	}
	off := (d.size + align - 1) / align * align
	d.at[t] = off
	d.parts = append(d.parts, placed{t, off})
	d.size = off + t.Bytes()
	return off
}

// tensor encodes t under the given name.
func (e *encoder) tensor(t *ir.Tensor, name string) *rope {
	r := &rope{}
	for _, d := range t.Shape {
		r.varint(tensorDims, uint64(d))
	}
	r.varint(tensorType, uint64(t.DType))
	r.optional(tensorName, name)
	o, _ := t.Origin.(*tensorOrigin)
	if o == nil {
		o = &tensorOrigin{form: formRaw}
	}
	e.extra(r, o.rest)
	e.payload(r, t, o)
	return r
}

func (e *encoder) payload(r *rope, t *ir.Tensor, o *tensorOrigin) {
	switch {
	case t.DType == ir.String, o.form == formTyped && !e.outside(t, o):
		r.chunks(o.typed)
	case o.form == formNone:
	case e.outside(t, o):
		e.external(r, t, o)
	default:
		r.head(tensorRaw, t.Bytes())
		if b, ok := t.Source.(ir.Mem); ok {
			r.lit(b)
			return
		}
		r.gap(part{tensor: t, n: t.Bytes()})
	}
}

// outside reports whether t's payload is written to the data file: if it is of some size
// or lay outside before.
func (e *encoder) outside(t *ir.Tensor, o *tensorOrigin) bool {
	return e.data != nil && t.DType != ir.String && (t.Bytes() >= externalFrom || o.form == formExternal)
}

func (e *encoder) external(r *rope, t *ir.Tensor, o *tensorOrigin) {
	f, off := e.data.place(t)
	for _, kv := range [][2]string{
		{"location", f.name},
		{"offset", strconv.FormatInt(off, 10)},
		{"length", strconv.FormatInt(t.Bytes(), 10)},
	} {
		r.message(tensorExternal, entryRope(ir.Entry{Key: kv[0], Value: kv[1]}))
	}
	r.extra(o.entries)
	r.varint(tensorLocation, 1)
}
