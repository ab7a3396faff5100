package onnx

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// A form is the field a tensor's payload came in.
type form uint8

const (
	formNone form = iota // no elements and no field
	formRaw
	formTyped
	formExternal
)

// A tensorOrigin has what writing a tensor back requires in addition to its Spec and payload; a tensor without one is
// raw_data.
type tensorOrigin struct {
	form    form
	rest    extra   // all fields but dims, data_type, name and the payload's
	typed   []chunk // formTyped: the payload's fields as they are in the file
	entries extra   // formExternal: external_data entries of unknown keys
	file    *source
}

// payload has the offsets of the pieces of a TensorProto's payload.
type payload struct {
	raw      field           // of number 0 if there is none
	typed    map[num][]chunk // typed fields by number; adjacent ones form one chunk
	external *external
	outside  bool
}

// keepSmall is the size up to which a payload is read at once: scalars and shapes,
// that passes read.
const keepSmall = 1 << 10

// tensor reads a TensorProto from its pieces; there is at least one.
func (d *decoder) tensor(pieces []field) (*ir.Tensor, error) {
	off := pieces[0].off
	t := &ir.Tensor{}
	var o tensorOrigin
	var p payload
	err := d.eachOf(pieces, func(f field) error { return d.tensorField(t, &o, &p, f) })
	if err != nil {
		return nil, err
	}
	d.enter((*tensorLabel)(t))
	defer d.leave()
	if !t.DType.Known() {
		return nil, d.fail(off, fmt.Sprintf("data_type %d is not known", t.DType))
	}
	if err := t.Valid(); err != nil {
		return nil, d.fail(off, err.Error())
	}
	if err := d.payload(t, &o, &p, off); err != nil {
		return nil, err
	}
	if o.form != formRaw || o.rest != nil {
		kept := o // most tensors need none
		t.Origin = &kept
	}
	return t, nil
}

func (d *decoder) tensorField(t *ir.Tensor, o *tensorOrigin, p *payload, f field) error {
	switch f.num {
	case tensorDims:
		return d.ints(f, func(v uint64) { t.Shape = append(t.Shape, int64(v)) })
	case tensorType:
		if f.v > 0xff {
			return d.fail(f.at, fmt.Sprintf("data_type %d is not known", int64(f.v)))
		}
		t.DType = ir.DType(f.v)
		return nil
	case tensorName:
		return d.text(&t.Name, &o.rest, f)
	case tensorRaw:
		if p.raw.num != 0 {
			return d.fail(f.at, "raw_data appears twice")
		}
		p.raw = f
		return d.want(f, protowire.BytesType)
	case tensorFloats, tensorInt32s, tensorInt64s, tensorDoubles, tensorUint64s, tensorStrings:
		p.addTyped(d.src, f)
		return nil
	case tensorExternal:
		return d.externalEntry(o, p, f)
	case tensorDoc, tensorMeta:
		return d.addDoc(&o.rest, f)
	case tensorLocation:
		if f.v == 1 {
			p.outside = true
			return nil
		}
	}
	return d.addField(&o.rest, f)
}

// addTyped notes a typed field; one that follows another directly extends it.
func (p *payload) addTyped(src *source, f field) {
	cs := p.typed[f.num]
	if k := len(cs); k > 0 && cs[k-1].off+cs[k-1].n == f.at {
		cs[k-1].n += f.end - f.at
		return
	}
	if p.typed == nil {
		p.typed = map[num][]chunk{}
	}
	p.typed[f.num] = append(cs, chunk{src: src, off: f.at, n: f.end - f.at})
}

func (d *decoder) externalEntry(o *tensorOrigin, p *payload, f field) error {
	var key, value string
	err := d.each(f.off, f.end, func(e field) (err error) {
		switch e.num {
		case entryKey:
			key, err = d.string(e)
		case entryValue:
			value, err = d.string(e)
		}
		return err
	})
	if err != nil {
		return err
	}
	if p.external == nil {
		p.external = &external{length: -1}
	}
	if err := p.external.set(key, value); err != nil {
		return d.fail(f.at, err.Error())
	}
	if key != "location" && key != "offset" && key != "length" {
		return d.addField(&o.entries, f)
	}
	return nil
}

// payload finds t's Source among p and checks its length against the Spec.
func (d *decoder) payload(t *ir.Tensor, o *tensorOrigin, p *payload, off int64) error {
	field := typedField(t.DType)
	for n, cs := range p.typed {
		if n != field {
			return d.fail(cs[0].off, fmt.Sprintf("the payload of %s is in a field of another type", t.Spec))
		}
	}
	switch {
	case p.outside:
		return d.outside(t, o, p, off)
	case p.raw.num != 0 && p.raw.len() == 0 && len(p.typed) > 0:
		// Present and empty: written back, but no payload.
		o.form, o.typed = formTyped, p.typed[field]
		return errors.Join(d.addField(&o.rest, p.raw), d.typed(t, o.typed, field))
	case p.raw.num != 0 && len(p.typed) > 0:
		return d.fail(off, "the payload is given twice, as raw_data and in a typed field")
	case p.raw.num != 0:
		return d.raw(t, o, p.raw)
	case len(p.typed) > 0:
		o.form, o.typed = formTyped, p.typed[field]
		return d.typed(t, o.typed, field)
	case t.Elems() > 0:
		return d.fail(off, fmt.Sprintf("%s has no data; the file was stripped of its weights", t.Spec))
	}
	t.Source = ir.Mem{}
	return nil
}

func (d *decoder) outside(t *ir.Tensor, o *tensorOrigin, p *payload, off int64) error {
	if p.external == nil {
		return d.fail(off, "data_location is EXTERNAL, but external_data names no file")
	}
	span, err := d.folder.span(*p.external, t.Spec)
	if err != nil {
		return d.failBy(off, err)
	}
	o.form, o.file = formExternal, span.R.(*source)
	t.Source = span
	return nil
}

func (d *decoder) raw(t *ir.Tensor, o *tensorOrigin, f field) error {
	if t.DType == ir.String {
		return d.fail(f.at, "strings cannot be raw_data")
	}
	if n := t.Bytes(); f.len() != n {
		return d.fail(f.at, fmt.Sprintf("raw_data has %d bytes, but %s takes %d", f.len(), t.Spec, n))
	}
	o.form = formRaw
	return d.span(t, f.off)
}

// span sets t's source to the bytes at off: in memory if they are few.
func (d *decoder) span(t *ir.Tensor, off int64) error {
	if n := t.Bytes(); n <= keepSmall {
		b, err := d.bytes(off, off+n)
		t.Source = ir.Mem(b)
		return err
	}
	t.Source = ir.Span{R: d.src, Off: off}
	return nil
}

// ints reads a repeated integer field, packed or not.
func (d *decoder) ints(f field, add func(uint64)) error {
	if f.typ == protowire.VarintType {
		add(f.v)
		return nil
	}
	if f.typ != protowire.BytesType || f.len() > maxString {
		return d.fail(f.at, "a list of integers is malformed")
	}
	b, err := d.bytes(f.off, f.end)
	if err != nil {
		return err
	}
	for len(b) > 0 {
		v, k := protowire.ConsumeVarint(b)
		if k < 0 {
			return d.fail(f.at, "a list of integers is malformed")
		}
		add(v)
		b = b[k:]
	}
	return nil
}

// typedField is the field that holds elements of type dt when raw_data does not.
func typedField(dt ir.DType) num {
	switch dt {
	case ir.Float, ir.Complex64:
		return tensorFloats
	case ir.Double, ir.Complex128:
		return tensorDoubles
	case ir.Int64:
		return tensorInt64s
	case ir.Uint32, ir.Uint64:
		return tensorUint64s
	case ir.String:
		return tensorStrings
	}
	return tensorInt32s
}

// A tensorLabel names a tensor in errors.
type tensorLabel ir.Tensor

func (t *tensorLabel) String() string { return "tensor " + strconv.Quote(t.Name) }
