package onnx

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// A source is an open file and its size.
type source struct {
	io.ReaderAt
	io.Closer // nil for a reader of the caller
	path      string
	size      int64
	name      string       // relative to the model's folder, of a data file
	member    string       // its name in a packed file; empty outside of one
	watched   *watchedFile // nil unless it is, or is packed in, a file on disk
}

func (s *source) close() error {
	if s.Closer == nil {
		return nil
	}
	return s.Close()
}

// window is the number of bytes per read: nodes and names of most models fit,
// payloads between them are skipped.
const window = 64 << 10

// maxDepth is protobuf's own limit on nested messages; subgraphs count twice or more.
const maxDepth = 100

// A cursor walks the messages of a file. It holds one window of it.
type cursor struct {
	src    *source
	ctxErr func() error // the error of the context; nil without one

	buf   []byte
	start int64 // offset of buf[0]
	what  []fmt.Stringer
	depth int

	metadata int64 // bytes of documentation so far
}

// A field is one field of a message: its tag is at at, its value in [off, end).
// num, typ and v are as protobuf defines them; v is set for numeric values.
type field struct {
	num          protowire.Number
	typ          protowire.Type
	v            uint64
	at, off, end int64
}

func (f field) len() int64 { return f.end - f.off }

// fail returns a FormatError at off that names the current field.
func (c *cursor) fail(off int64, msg string) error {
	return c.failBy(off, errors.New(msg))
}

// failBy returns a FormatError with the message and the cause of err.
func (c *cursor) failBy(off int64, err error) error {
	what := ""
	if len(c.what) > 0 {
		what = c.what[len(c.what)-1].String()
	}
	return &FormatError{File: c.src.path, Off: off, What: what, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// enter sets the field that errors name, until leave.
func (c *cursor) enter(what fmt.Stringer) { c.what = append(c.what, what) }

func (c *cursor) leave() { c.what = c.what[:len(c.what)-1] }

// interrupted returns the error of the context.
func (c *cursor) interrupted() error {
	if c.ctxErr == nil {
		return nil
	}
	return c.ctxErr()
}

// peek returns the bytes from off on, at least n of them unless the file ends.
func (c *cursor) peek(off int64, n int) ([]byte, error) {
	if off >= c.start && off+int64(n) <= c.start+int64(len(c.buf)) {
		return c.buf[off-c.start:], nil
	}
	if err := c.interrupted(); err != nil {
		return nil, err
	}
	// At least a window, so that the small fields after this one need no read of their own.
	want := min(max(int64(n), window), c.src.size-off)
	if want < 0 {
		want = 0
	}
	if int64(cap(c.buf)) < want {
		c.buf = make([]byte, want)
	}
	c.buf, c.start = c.buf[:want], off
	k, err := c.src.ReadAt(c.buf, off)
	if int64(k) < want && err != nil && !errors.Is(err, io.EOF) {
		c.buf = nil
		return nil, err
	}
	c.buf = c.buf[:k]
	return c.buf, nil
}

// bytes returns a copy of [off, end), which is inside the file.
func (c *cursor) bytes(off, end int64) ([]byte, error) {
	out := make([]byte, end-off)
	if end-off > window {
		if n, err := c.src.ReadAt(out, off); n < len(out) {
			return nil, c.fail(off, "cannot be read: "+err.Error())
		}
		return out, nil
	}
	b, err := c.within(off, end)
	copy(out, b)
	return out, err
}

// within returns [off, end), which is not longer than a window, until the next call.
func (c *cursor) within(off, end int64) ([]byte, error) {
	b, err := c.peek(off, int(end-off))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) < end-off {
		return nil, c.fail(off, "the file ends inside this field")
	}
	return b[:end-off], nil
}

// maxString is the maximum length of a name: an invalid length allocates no memory.
const maxString = 1 << 20

func (c *cursor) string(f field) (string, error) {
	if err := c.want(f, protowire.BytesType); err != nil {
		return "", err
	}
	if f.len() > maxString {
		return "", c.fail(f.at, "a name is longer than 1 MiB")
	}
	if f.len() > window {
		b, err := c.bytes(f.off, f.end)
		return string(b), err
	}
	b, err := c.within(f.off, f.end)
	return string(b), err
}

// want reports a field of the wrong wire type.
func (c *cursor) want(f field, typ protowire.Type) error {
	if f.typ != typ {
		return c.fail(f.at, "a field has the wrong wire type: not a valid ONNX model")
	}
	return nil
}

// each calls do for every field of the message in [off, end).
func (c *cursor) each(off, end int64, do func(field) error) error {
	if c.depth++; c.depth > maxDepth {
		return c.fail(off, "messages are nested deeper than 100")
	}
	defer func() { c.depth-- }()
	for off < end {
		f, err := c.field(off, end)
		if err != nil {
			return err
		}
		if err := do(f); err != nil {
			return err
		}
		off = f.end
	}
	return nil
}

// eachOf is each over the pieces of one message: a writer may split a message field,
// and readers take the pieces as one.
func (c *cursor) eachOf(pieces []field, do func(field) error) error {
	for _, f := range pieces {
		if err := c.want(f, protowire.BytesType); err != nil {
			return err
		}
		if err := c.each(f.off, f.end, do); err != nil {
			return err
		}
	}
	return nil
}

// field reads the tag at off and finds the value's extent.
func (c *cursor) field(off, end int64) (field, error) {
	const head = 2 * 10 // a tag and a length or number
	b, err := c.peek(off, int(min(head, end-off)))
	if err != nil {
		return field{}, err
	}
	// What at returns may go beyond the message: a varint must not be read across its end.
	b = b[:min(int64(len(b)), end-off)]
	n, typ, k := protowire.ConsumeTag(b)
	if k < 0 {
		return field{}, c.fail(off, "not a valid protobuf message")
	}
	f := field{num: n, typ: typ, at: off, off: off + int64(k)}
	if typ == protowire.StartGroupType {
		return c.group(f, end)
	}
	k = c.value(&f, b[k:])
	if k < 0 {
		return field{}, c.fail(off, "not a valid protobuf message")
	}
	if f.end > end || f.end < f.off {
		return field{}, c.fail(off, "a field reaches beyond its message or the end of the file")
	}
	return f, nil
}

// value sets f's extent and number from the bytes after its tag.
func (c *cursor) value(f *field, b []byte) int {
	var k int
	switch f.typ {
	case protowire.VarintType:
		f.v, k = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		var v uint32
		v, k = protowire.ConsumeFixed32(b)
		f.v = uint64(v)
	case protowire.Fixed64Type:
		f.v, k = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		var n uint64
		n, k = protowire.ConsumeVarint(b)
		if k < 0 || n > uint64(c.src.size) {
			// Beyond the file, which field reports: a length of 64 bits would overflow as an offset.
			f.end = c.src.size + 1
			return max(k, 0)
		}
		f.off += int64(k)
		f.end = f.off + int64(n)
		return k
	default:
		return -1
	}
	f.end = f.off + int64(k)
	return k
}

// group finds the end of a group, a form that ONNX never uses but unknown fields may.
func (c *cursor) group(f field, end int64) (field, error) {
	if c.depth++; c.depth > maxDepth {
		return f, c.fail(f.at, "messages are nested deeper than 100")
	}
	defer func() { c.depth-- }()
	off := f.off
	// Fields of the group may be groups themselves, of which each has its own end tag.
	for off < end {
		b, err := c.peek(off, int(min(10, end-off)))
		if err != nil {
			return f, err
		}
		n, typ, k := protowire.ConsumeTag(b)
		if k > 0 && typ == protowire.EndGroupType && n == f.num {
			f.end = off + int64(k)
			return f, nil
		}
		inner, err := c.field(off, end)
		if err != nil {
			return f, err
		}
		off = inner.end
	}
	return f, c.fail(f.at, "a group does not end")
}
