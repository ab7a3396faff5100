package onnx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// A ValueKind is the message of a file of one value. The file itself does not
// say: a SequenceProto and an OptionalProto of one tensor are the same bytes. The type of
// the graph input or output that the file is for does.
type ValueKind uint8

// The kinds of values that a model declares.
const (
	TensorValue ValueKind = iota
	SequenceValue
	MapValue
	OptionalValue
)

// Field numbers of the messages that hold one value. SequenceProto and OptionalProto
// number what they hold alike.
const (
	typeSequence num = 4
	typeMap      num = 5
	typeOptional num = 9

	holdsTensor   num = 3
	holdsSparse   num = 4
	holdsSequence num = 5
	holdsMap      num = 6
	holdsOptional num = 7

	mapKeys     num = 3
	mapTextKeys num = 4
	mapValues   num = 5
)

// KindOf is the kind of v, an input or output of a graph that Open read: TensorValue
// where the model does not say.
func KindOf(v *ir.Value) ValueKind {
	x, _ := v.Graph().Extra.(*graphExtra)
	if x == nil || v.Type != nil {
		return TensorValue
	}
	kind := TensorValue
	for _, in := range []map[string]info{x.inputs, x.outputs} {
		for _, ch := range in[v.Name].raw {
			if ch.src == nil {
				ch.src, ch.n = &source{ReaderAt: bytes.NewReader(ch.lit), size: int64(len(ch.lit))}, int64(len(ch.lit))
			}
			kind = max(kind, (&cursor{src: ch.src}).infoKind(ch))
		}
	}
	return kind
}

// infoKind is the kind that the ValueInfoProto in ch states; it was walked once already,
// so it is well-formed.
func (c *cursor) infoKind(ch chunk) ValueKind {
	kinds := map[num]ValueKind{typeSequence: SequenceValue, typeMap: MapValue, typeOptional: OptionalValue}
	var kind ValueKind
	_ = c.each(ch.off, ch.off+ch.n, func(info field) error {
		return c.each(info.off, info.end, func(typ field) error {
			if typ.num != infoType {
				return nil
			}
			return c.each(typ.off, typ.end, func(f field) error {
				kind = max(kind, kinds[f.num])
				return nil
			})
		})
	})
	return kind
}

// ReadValue reads a file that holds one value, as ONNX's test data sets do: a TensorProto
// or the message that kind names. Memory is proportional to the file. Errors about
// the content are *FormatError; external data is one of them.
func ReadValue(path string, kind ValueKind) (*ir.Array, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, pathError(path, err)
	}
	return readValueAt(f, st.Size(), path, kind)
}

// readValueAt is ReadValue for the first size bytes of r; name is its name in errors.
func readValueAt(r io.ReaderAt, size int64, name string, kind ValueKind) (*ir.Array, error) {
	src := &source{ReaderAt: r, path: name, size: size}
	d := &valueDecoder{decoder{cursor: cursor{src: src}, folder: &folder{}}}
	return d.valueOf(field{typ: protowire.BytesType, end: size}, kind)
}

// A valueDecoder turns the messages of values outside of a model into arrays.
type valueDecoder struct{ decoder }

func (d *valueDecoder) valueOf(f field, kind ValueKind) (*ir.Array, error) {
	if err := d.want(f, protowire.BytesType); err != nil {
		return nil, err
	}
	switch kind {
	case SequenceValue:
		items, err := d.values(f)
		return &ir.Array{Kind: ir.Sequence, Items: items}, err
	case OptionalValue:
		items, err := d.values(f)
		if err == nil && len(items) > 1 {
			err = d.fail(f.off, fmt.Sprintf("an optional holds %d values", len(items)))
		}
		if err != nil || len(items) == 0 {
			return &ir.Array{Kind: ir.None}, err
		}
		return items[0], nil
	case MapValue:
		return d.mapValue(f)
	}
	return d.array(f)
}

// values are the values that a SequenceProto or OptionalProto holds.
func (d *valueDecoder) values(f field) ([]*ir.Array, error) {
	kinds := map[num]ValueKind{
		holdsTensor:   TensorValue,
		holdsSequence: SequenceValue,
		holdsMap:      MapValue,
		holdsOptional: OptionalValue,
	}
	var items []*ir.Array
	err := d.each(f.off, f.end, func(f field) error {
		kind, ok := kinds[f.num]
		switch {
		case f.num == holdsSparse:
			return d.fail(f.at, "a sparse tensor is no value of a sequence that can be read")
		case !ok:
			return nil
		}
		item, err := d.valueOf(f, kind)
		items = append(items, item)
		return err
	})
	return items, err
}

// mapValue reads a MapProto whose values are tensors of one element.
func (d *valueDecoder) mapValue(f field) (*ir.Array, error) {
	var numbers []int64
	var text []string
	var values []*ir.Array
	err := d.each(f.off, f.end, func(f field) (err error) {
		switch f.num {
		case mapKeys:
			return d.ints(f, func(v uint64) { numbers = append(numbers, int64(v)) })
		case mapTextKeys:
			return d.names(&text, f)
		case mapValues:
			values, err = d.values(f)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	keys := ir.ArrayOf(numbers, int64(len(numbers)))
	if len(text) > 0 {
		keys = ir.TextOf(text, int64(len(text)))
	}
	if keys.Elems() != int64(len(values)) {
		return nil, d.fail(f.off, fmt.Sprintf("a map has %d keys and %d values", keys.Elems(), len(values)))
	}
	joined, ok := concatenated(values)
	if !ok {
		return nil, d.fail(f.off, "a map's values are not single elements of one type")
	}
	return &ir.Array{Kind: ir.Map, Keys: keys, Items: []*ir.Array{joined}}, nil
}

// concatenated is one tensor of tensors of one element each; ok is false where their types differ.
func concatenated(values []*ir.Array) (all *ir.Array, ok bool) {
	all = &ir.Array{DType: ir.Float, Shape: []int64{int64(len(values))}}
	for i, v := range values {
		if i == 0 {
			all.DType = v.DType
		}
		if v.Kind != ir.Dense || v.Elems() != 1 || v.DType != all.DType || v.DType.Bits()%8 != 0 {
			return nil, false
		}
		all.Data, all.Text = append(all.Data, v.Data...), append(all.Text, v.Text...)
	}
	return all.Clone(), true // Clone aligns
}

// array reads a TensorProto with its elements.
func (d *valueDecoder) array(f field) (*ir.Array, error) {
	err := d.each(f.off, f.end, func(f field) error {
		if f.num == tensorLocation && f.v == 1 {
			return d.fail(f.at, "a tensor outside of a model cannot have external data; save it with its elements")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t, err := d.tensor([]field{f})
	if err != nil {
		return nil, err
	}
	a := &ir.Array{DType: t.DType, Shape: t.Shape}
	if err := fill(a, t); err != nil {
		return nil, d.fail(f.off, err.Error())
	}
	return a, nil
}

// fill reads the payload of t, whose size was checked against the file.
func fill(a *ir.Array, t *ir.Tensor) (err error) {
	a.Data = ir.AlignedBytes(t.Bytes())
	switch s := t.Source.(type) {
	case ir.Text:
		a.Text, err = s()
	case ir.Mem:
		copy(a.Data, s)
	case ir.Span:
		return ir.ReadFull(s.R, a.Data, s.Off)
	case ir.Output:
		into := bytes.NewBuffer(a.Data[:0]) // the recipe writes no more than its spec takes
		return s.Of.Run(context.Background(), nil, []io.Writer{into})
	}
	return err
}

// text are the elements of a String tensor from its string_data, in cs.
func text(s ir.Spec, cs []chunk) ([]string, error) {
	var text []string
	for _, ch := range cs {
		c := &cursor{src: ch.src}
		err := c.each(ch.off, ch.off+ch.n, func(f field) error {
			if f.typ != protowire.BytesType {
				return errors.New("an item of string_data is no string")
			}
			b, err := c.bytes(f.off, f.end)
			text = append(text, string(b))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if int64(len(text)) != s.Elems() {
		return nil, fmt.Errorf("string_data holds %d items, but %s takes %d", len(text), s, s.Elems())
	}
	return text, nil
}
