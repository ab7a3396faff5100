package onnx

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// typed sets the source of a tensor whose payload stands in a typed field. Packed
// floats are little-endian in the file already; the rest is decoded when it is read.
func (d *decoder) typed(t *ir.Tensor, cs []chunk, n num) error {
	if t.DType == ir.String {
		return nil // never opened; written back as it came
	}
	var bytes int64
	for _, c := range cs {
		bytes += c.n
	}
	item := itemBytes(t.DType)
	items := t.Bytes() / item
	// A list item takes at least one byte, so a huge shape over a short field is found here.
	if items > bytes || items == 0 {
		return d.fail(cs[0].off, fmt.Sprintf("%s takes %d list items, but the field has %d bytes", t.Spec, items, bytes))
	}
	if len(cs) == 1 && (n == tensorFloats || n == tensorDoubles) {
		f, err := d.field(cs[0].off, cs[0].off+cs[0].n)
		if err != nil {
			return err
		}
		if f.end == cs[0].off+cs[0].n && f.typ == protowire.BytesType && f.len() == t.Bytes() {
			return d.span(t, f.off)
		}
	}
	r := &ir.Recipe{Name: "decode", Out: []ir.Spec{t.Spec}, Work: 2 * window}
	r.Run = func(ctx context.Context, _ []io.ReaderAt, out []io.Writer) error {
		return decodeTyped(ctx, cs, item, out[0])
	}
	t.Source = ir.Output{Of: r}
	if items > keepSmall {
		return nil
	}
	m := &memWriter{}
	if err := decodeTyped(context.Background(), cs, item, m); err != nil {
		return err
	}
	if int64(len(m.b)) != t.Bytes() {
		return d.fail(cs[0].off, fmt.Sprintf("the field holds %d items, but %s takes %d", int64(len(m.b))/item, t.Spec, items))
	}
	t.Source = ir.Mem(m.b)
	return nil
}

type memWriter struct{ b []byte }

func (m *memWriter) Write(p []byte) (int, error) {
	m.b = append(m.b, p...)
	return len(p), nil
}

// itemBytes is how many bytes of raw_data one item of dt's typed field stands for:
// a byte for packed sub-byte types, half an element for complex ones.
func itemBytes(dt ir.DType) int64 {
	switch b := dt.Bits(); {
	case dt == ir.Complex64 || dt == ir.Complex128:
		return b / 16
	case b < 8:
		return 1
	default:
		return b / 8
	}
}

// decodeTyped writes the items of the fields in cs as little-endian values.
func decodeTyped(ctx context.Context, cs []chunk, item int64, out io.Writer) error {
	w := bufio.NewWriterSize(out, window)
	for _, ch := range cs {
		c := &cursor{src: ch.src}
		err := c.each(ch.off, ch.off+ch.n, func(f field) error {
			if f.typ != protowire.BytesType {
				return putItem(w, f.v, item)
			}
			return c.packed(ctx, f, item, w)
		})
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// packed writes the items of one packed field; fixed-width ones are copied.
func (c *cursor) packed(ctx context.Context, f field, item int64, w *bufio.Writer) error {
	if f.num == tensorFloats || f.num == tensorDoubles {
		return ir.Copy(ctx, w, io.NewSectionReader(c.src, f.off, f.len()), f.len())
	}
	for off := f.off; off < f.end; {
		b, err := c.at(off, int(min(10, f.end-off)))
		if err != nil {
			return err
		}
		b = b[:min(int64(len(b)), f.end-off)]
		n := 0
		for len(b)-n >= 10 || int64(len(b)) == f.end-off && n < len(b) {
			v, k := protowire.ConsumeVarint(b[n:])
			if k < 0 {
				return c.fail(off, "a list of integers is malformed")
			}
			if err := putItem(w, v, item); err != nil {
				return err
			}
			n += k
		}
		if n == 0 {
			return c.fail(off, "a list of integers is malformed")
		}
		off += int64(n)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

var errItem = errors.New("no such item width")

func putItem(w *bufio.Writer, v uint64, item int64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	if item > 8 {
		return errItem
	}
	_, err := w.Write(b[:item])
	return err
}
