package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

const npyMagic = "\x93NUMPY"

// maxHeader bounds an .npy header; NumPy's own limit is 10,000 characters.
const maxHeader = 64 << 10

// parseNPY parses the header of a .npy array, version 1.0, 2.0 or 3.0 of the format (numpy.lib.format), and checks it
// against the size of c.
func parseNPY(c *content, name string) (*array, error) {
	a, err := parseHeader(c, name)
	if err == nil && a.scalar {
		return nil, fmt.Errorf("%s: a scalar has no samples; the first axis must be samples", a.row().Name)
	}
	return a, err
}

// parseHeader is parseNPY, and also reads scalars, as one sample.
func parseHeader(c *content, name string) (*array, error) {
	a := &array{from: c, name: name}
	header, off, err := npyHeader(c)
	if err == nil {
		a.off = off
		err = a.describe(header)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.row().Name, err)
	}
	a.stride = a.rowBytes()
	return a, a.checkSize()
}

// npyHeader is the text of the header and the offset of the data.
func npyHeader(c *content) (string, int64, error) {
	head := c.head(12)
	if len(head) < 12 || !bytes.HasPrefix(head, []byte(npyMagic)) {
		return "", 0, fmt.Errorf("not a valid .npy file; save it with numpy.save or numpy.savez")
	}
	off, size := int64(10), int64(binary.LittleEndian.Uint16(head[8:]))
	switch version := head[6]; version {
	case 1:
	case 2, 3:
		// Since version 2 the size of the header has four bytes.
		off, size = 12, int64(binary.LittleEndian.Uint32(head[8:]))
	default:
		return "", 0, fmt.Errorf("unsupported version %d of the .npy format", version)
	}
	if size > maxHeader {
		return "", 0, fmt.Errorf("its header has %d bytes; the maximum is %d", size, maxHeader)
	}
	text := make([]byte, size)
	if err := ir.ReadFull(c, text, off); err != nil {
		return "", 0, err
	}
	return string(text), off + size, nil
}

// describe parses type, order and shape of a header.
func (a *array) describe(header string) error {
	h := literal{rest: header}
	var descr, order string
	var shape []int64
	h.expect("{")
	for !h.bad && !h.hasToken("}") {
		key := h.text()
		h.expect(":")
		switch key {
		case "descr":
			if h.hasToken("[") {
				return fmt.Errorf("structured arrays are not supported; save one array per field")
			}
			descr = h.text()
		case "fortran_order":
			order = h.word()
		case "shape":
			shape = h.tuple()
		default:
			h.bad = true
		}
		if !h.hasToken("}") {
			h.expect(",")
		}
	}
	if h.bad || descr == "" || shape == nil || order != "True" && order != "False" {
		return fmt.Errorf("invalid .npy header %.80q", header)
	}
	elem, err := elementOf(descr)
	if err != nil {
		return err
	}
	if a.scalar = len(shape) == 0; a.scalar {
		shape = []int64{1}
	}
	a.elem, a.n, a.shape, a.fortran = elem, shape[0], shape[1:], order == "True" && len(shape) > 1
	return validShape(shape, elem.size)
}

// validShape rejects sizes that are negative or overflow.
func validShape(shape []int64, elem int64) error {
	return ir.Spec{DType: ir.Uint8, Shape: append([]int64{max(elem, 1)}, shape...)}.Valid()
}

// elementOf parses a NumPy type string: byte order, kind and width.
func elementOf(descr string) (element, error) {
	types := map[string]ir.DType{
		"b1": ir.Bool, "i1": ir.Int8, "u1": ir.Uint8, "i2": ir.Int16, "u2": ir.Uint16, "i4": ir.Int32, "u4": ir.Uint32,
		"i8": ir.Int64, "u8": ir.Uint64, "f2": ir.Float16, "f4": ir.Float, "f8": ir.Double, "c8": ir.Complex64,
		"c16": ir.Complex128,
		// unsupported: f12, f16 and c32 (depend on the machine), m and M (times), V and O (structures and pickles)
	}
	kind := strings.TrimLeft(descr, "<>|=")
	big := strings.HasPrefix(descr, ">")
	if dt, ok := types[kind]; ok {
		e := element{dtype: dt, size: dt.Bits() / 8}
		if big {
			e.swap = e.size
		}
		if big && kind[0] == 'c' {
			// Both parts of a complex number are words of their own.
			e.swap /= 2
		}
		return e, nil
	}
	const longest = 1 << 20
	if kind != "" && (kind[0] == 'U' || kind[0] == 'S') {
		n, err := strconv.ParseInt(kind[1:], 10, 64)
		if err == nil && n >= 0 && n <= longest {
			return textElement(kind[0] == 'U', n, big), nil
		}
	}
	return element{}, fmt.Errorf("unsupported NumPy type %q; save numbers, bools or strings", descr)
}

func textElement(runes bool, n int64, big bool) element {
	e := element{dtype: ir.String, size: n, runes: runes}
	if runes {
		e.size = 4 * n
	}
	if runes && big {
		e.swap = 4
	}
	return e
}

// A literal parses the Python literal of a header.
type literal struct {
	rest string
	bad  bool
}

// hasToken reports whether token is next.
func (l *literal) hasToken(token string) bool {
	l.rest = strings.TrimLeft(l.rest, " \t\r\n")
	return strings.HasPrefix(l.rest, token)
}

// expect consumes token, or sets bad.
func (l *literal) expect(token string) {
	if l.hasToken(token) {
		l.rest = l.rest[len(token):]
		return
	}
	l.bad = true
}

// text consumes a quoted string without escapes.
func (l *literal) text() string {
	quote := "'"
	if l.hasToken(`"`) {
		quote = `"`
	}
	l.expect(quote)
	s, rest, ok := strings.Cut(l.rest, quote)
	if l.rest = rest; !ok {
		l.bad = true
	}
	return s
}

// word consumes letters and digits.
func (l *literal) word() string {
	// This skips spaces.
	l.hasToken("")
	n := 0
	for n < len(l.rest) && strings.IndexByte(" ,)}\n", l.rest[n]) < 0 {
		n++
	}
	w := l.rest[:n]
	l.rest = l.rest[n:]
	return w
}

// tuple consumes integers in parentheses.
func (l *literal) tuple() []int64 {
	items := []int64{}
	l.expect("(")
	for !l.bad && !l.hasToken(")") {
		n, err := strconv.ParseInt(strings.TrimSuffix(l.word(), "L"), 10, 64) // Python 2 writes 2L
		l.bad = l.bad || err != nil
		items = append(items, n)
		if !l.hasToken(")") {
			l.expect(",")
		}
	}
	l.expect(")")
	return items
}

// NPYHeader is the header of an .npy file, version 1.0 of NumPy's format: the elements after it start at a multiple of
// 64 bytes.
func NPYHeader(descr string, shape []int64) []byte {
	var dims strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&dims, "%d,", d)
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	const prefix, align = 10, 64
	text += strings.Repeat(" ", align-1-(prefix+len(text))%align) + "\n"
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}
