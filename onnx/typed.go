package onnx

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// typed sets the source of a tensor whose payload is in a typed field. Packed
// floats are little-endian in the file already; the rest is decoded when it is read.
func (d *decoder) typed(t *ir.Tensor, cs []chunk, n num) error {
	if t.DType == ir.String {
		t.Source = ir.Text(func() ([]string, error) { return text(t.Spec, cs) }) // written back as it came
		return nil
	}
	var size int64
	for _, c := range cs {
		size += c.n
	}
	items := typedItems(t.Spec)
	// A list item has at least one byte, so a huge shape over a short field is found here.
	if items > size {
		return d.fail(cs[0].off, fmt.Sprintf("%s takes %d list items, but the field has %d bytes", t.Spec, items, size))
	}
	// One packed field of floats has the bytes of raw_data: no copy and no recipe.
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
		return decodeTyped(ctx, cs, t.Spec, out[0])
	}
	t.Source = ir.Output{Of: r}
	if items > keepSmall {
		return nil
	}
	var m bytes.Buffer
	if err := decodeTyped(context.Background(), cs, t.Spec, &m); err != nil {
		return d.fail(cs[0].off, err.Error())
	}
	t.Source = ir.Mem(m.Bytes())
	return nil
}

// itemBits is how many bits of raw_data one item of dt's typed field has: a
// byte for types of 4 and 2 bits, which are packed, half an element for complex ones.
func itemBits(dt ir.DType) int64 {
	switch b := dt.Bits(); {
	case dt == ir.Complex64 || dt == ir.Complex128:
		return b / 2
	case b < 6:
		return 8
	default:
		return b
	}
}

// typedItems is the number of items that the typed field of a tensor has.
func typedItems(s ir.Spec) int64 {
	bits := itemBits(s.DType)
	if bits == 6 {
		return s.Elems()
	}
	return s.Bytes() * 8 / bits
}

// decodeTyped writes the items of the fields in cs as raw_data holds them.
func decodeTyped(ctx context.Context, cs []chunk, s ir.Spec, out io.Writer) error {
	w := &itemWriter{Writer: bufio.NewWriterSize(out, window), bits: itemBits(s.DType), want: typedItems(s)}
	for _, ch := range cs {
		c := &cursor{src: ch.src}
		err := c.each(ch.off, ch.off+ch.n, func(f field) error {
			if f.typ != protowire.BytesType {
				return w.put(f.v)
			}
			return c.packed(ctx, f, w)
		})
		if err != nil {
			return err
		}
	}
	if w.items != w.want {
		return fmt.Errorf("its typed field holds %d items, but %s takes %d", w.items, s, w.want)
	}
	return w.finish()
}

// packed writes the items of one packed field; fixed-width ones are copied.
func (c *cursor) packed(ctx context.Context, f field, w *itemWriter) error {
	if f.num == tensorFloats || f.num == tensorDoubles {
		if w.items += f.len() * 8 / w.bits; w.items > w.want {
			return errItems
		}
		return ir.Copy(ctx, w, io.NewSectionReader(c.src, f.off, f.len()), f.len())
	}
	for off := f.off; off < f.end; {
		b, err := c.peek(off, int(min(10, f.end-off)))
		if err != nil {
			return err
		}
		b = b[:min(int64(len(b)), f.end-off)]
		n := 0
		// A varint has up to 10 bytes: fewer are decoded only at the end of the field, else they may be cut off by
		// the window.
		for len(b)-n >= 10 || int64(len(b)) == f.end-off && n < len(b) {
			v, k := protowire.ConsumeVarint(b[n:])
			if k < 0 {
				return c.fail(off, "a list of integers is malformed")
			}
			if err := w.put(v); err != nil {
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

// An itemWriter writes items of bits bits little-endian, without gaps.
type itemWriter struct {
	*bufio.Writer
	bits        int64
	items, want int64  // written, and in all
	rest        uint64 // bits that do not fill a byte yet
	n           int64  // how many
}

// errItems is returned before memory is allocated for a field that is longer than its tensor.
var errItems = errors.New("its typed field holds more items than its shape takes")

func (w *itemWriter) put(v uint64) error {
	if w.items++; w.items > w.want {
		return errItems
	}
	w.rest |= v & (1<<w.bits - 1) << w.n
	for w.n += w.bits; w.n >= 8; w.n -= 8 {
		if err := w.WriteByte(byte(w.rest)); err != nil {
			return err
		}
		w.rest >>= 8
	}
	return nil
}

func (w *itemWriter) finish() error {
	if w.n > 0 {
		if err := w.WriteByte(byte(w.rest)); err != nil {
			return err
		}
	}
	return w.Flush()
}
