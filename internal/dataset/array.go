package dataset

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcompress/mcompress/ir"
)

// A column is one array of the data: samples along its first axis.
type column interface {
	// rows is the number of samples; row is the type and shape of one, with the column's name for messages.
	rows() int64
	row() ir.Spec
	// held is the memory, in bytes, of n samples during loading, and transient the part of it that is allocated anew
	// each time.
	held(n int64) int64
	transient(n int64) int64
	// load reads samples in two steps, as feed.load does.
	load(index []int, to *buffers) (func() (*ir.Array, error), error)
	// random prepares fast loading in any order.
	random(dir string) error
}

// An array is a column whose samples have a fixed size in a file.
type array struct {
	from        *content
	name        string // of the array in its file; empty if the file is one array
	elem        element
	n           int64
	shape       []int64 // of one sample
	off, stride int64   // of sample 0, and from one sample to the next
	scalar      bool    // without axes
	fortran     bool    // the first axis varies fastest; off is that of the whole array
}

// An element is the encoding of an element in a file.
type element struct {
	dtype ir.DType
	size  int64 // bytes
	swap  int64 // width of words in foreign byte order; 0 for native order
	runes bool  // of strings: UTF-32 instead of bytes
}

func (a *array) rows() int64 { return a.n }

func (a *array) row() ir.Spec {
	name := a.from.name
	if a.name != "" {
		name = fmt.Sprintf("%s: array %q", name, a.name)
	}
	return ir.Spec{Name: name, DType: a.elem.dtype, Shape: a.shape}
}

func (a *array) elems() int64 { return a.row().Elems() }

func (a *array) rowBytes() int64 { return a.elems() * a.elem.size }

func (a *array) held(n int64) int64 {
	return n*a.rowBytes() + a.transient(n)
}

// transient is the memory of strings.
func (a *array) transient(n int64) int64 {
	if a.elem.dtype != ir.String {
		return 0
	}
	return n * (a.rowBytes() + 16*a.elems())
}

// end is the file offset of the end of the array.
func (a *array) end() int64 {
	if a.n == 0 {
		return a.off
	}
	if a.fortran {
		return a.off + a.n*a.rowBytes()
	}
	return a.off + (a.n-1)*a.stride + a.rowBytes()
}

// checkSize compares the header with the size of the file and with the maximum size of a sample. Shapes are already
// validated, so nothing overflows.
func (a *array) checkSize() error {
	if a.held(1) > maxSample {
		return fmt.Errorf("%s: a sample %s has %d bytes; the maximum is %d", a.row().Name, a.row(), a.held(1), maxSample)
	}
	if a.rowBytes() == 0 && a.n > maxEmpty {
		return fmt.Errorf("%s: %d empty samples are too many", a.row().Name, a.n)
	}
	return a.from.checkSize(a.end())
}

// maxEmpty bounds the number of samples that have no bytes in the file, but use memory.
const maxEmpty = 1 << 20

func (a *array) random(dir string) error {
	if s, ok := a.from.ReaderAt.(*stream); ok {
		if err := s.saveToFile(dir, a.end()); err != nil {
			return fmt.Errorf("%s: %w", a.row().Name, err)
		}
	}
	return nil
}

func (a *array) load(index []int, to *buffers) (func() (*ir.Array, error), error) {
	raw := to.bytes(int64(len(index)) * a.rowBytes())
	for at := 0; at < len(index); {
		n := following(index[at:])
		part := raw[int64(at)*a.rowBytes():][:int64(n)*a.rowBytes()]
		if err := a.readSamples(part, int64(index[at]), int64(n)); err != nil {
			return nil, fmt.Errorf("%s: sample %d: %w", a.row().Name, index[at], err)
		}
		at += n
	}
	return func() (*ir.Array, error) { return a.decode(raw, int64(len(index))) }, nil
}

// following is the number of samples at the start of index that are contiguous in the file.
func following(index []int) int {
	n := 1
	for n < len(index) && index[n] == index[n-1]+1 {
		n++
	}
	return n
}

// readSamples reads n samples, starting with first, into raw.
func (a *array) readSamples(raw []byte, first, n int64) error {
	size := a.rowBytes()
	switch {
	case size == 0:
		return nil
	case a.fortran:
		return a.readColumnMajor(raw, first, n)
	case a.stride == size:
		return ir.ReadFull(a.from, raw, a.off+first*size)
	}
	for i := range n {
		if err := ir.ReadFull(a.from, raw[i*size:][:size], a.off+(first+i)*a.stride); err != nil {
			return err
		}
	}
	return nil
}

// readColumnMajor reads samples of a Fortran-order array, where elements of a sample are a.n elements from each
// other: it reads each element of all n samples at once.
func (a *array) readColumnMajor(raw []byte, first, n int64) error {
	size, row := a.elem.size, a.rowBytes()
	same := make([]byte, n*size)
	at := make([]int64, len(a.shape)) // the position in the row
	for k := range a.elems() {
		off, step := int64(0), a.n
		for d, i := range at {
			// In Fortran order the step of an axis is the product of the sizes before it, samples first.
			off += i * step
			step *= a.shape[d]
		}
		if err := ir.ReadFull(a.from, same, a.off+(off+first)*size); err != nil {
			return err
		}
		for i := range n {
			copy(raw[i*row+k*size:][:size], same[i*size:])
		}
		next(at, a.shape)
	}
	return nil
}

// next advances a position in row-major order.
func next(at, shape []int64) {
	for d := len(at) - 1; d >= 0; d-- {
		if at[d]++; at[d] < shape[d] {
			return
		}
		at[d] = 0
	}
}

// decode makes a tensor of the bytes of n samples.
func (a *array) decode(raw []byte, n int64) (*ir.Array, error) {
	swap(raw, a.elem.swap)
	shape := append([]int64{n}, a.shape...)
	if a.elem.dtype == ir.String {
		text, err := a.text(raw, n)
		return ir.TextOf(text, shape...), err
	}
	if a.elem.dtype == ir.Bool {
		for i, b := range raw {
			// Kernels rely on bools of 0 and 1; a file may have other bytes.
			raw[i] = min(b, 1)
		}
	}
	return &ir.Array{DType: a.elem.dtype, Shape: shape, Data: raw}, nil
}

// swap reverses the bytes of each word.
func swap(raw []byte, width int64) {
	if width < 2 {
		return
	}
	for ; int64(len(raw)) >= width; raw = raw[width:] {
		slices.Reverse(raw[:width])
	}
}

// text decodes the strings of n samples, which are zero-padded to their width.
func (a *array) text(raw []byte, n int64) ([]string, error) {
	text := make([]string, 0, n*a.elems())
	for ; len(raw) > 0; raw = raw[a.elem.size:] {
		item := raw[:a.elem.size]
		if !a.elem.runes {
			text = append(text, strings.TrimRight(string(item), "\x00"))
			continue
		}
		var b strings.Builder
		// Words are in little-endian order here: decode has swapped others.
		for ; len(item) > 0; item = item[4:] {
			r := rune(uint32(item[0]) | uint32(item[1])<<8 | uint32(item[2])<<16 | uint32(item[3])<<24)
			if !utf8.ValidRune(r) {
				return nil, fmt.Errorf("%s: a string contains %#x, not a Unicode code point", a.row().Name, uint32(r))
			}
			b.WriteRune(r)
		}
		text = append(text, strings.TrimRight(b.String(), "\x00"))
	}
	return text, nil
}

// inMemory is a column whose elements are in memory.
func inMemory[T ir.Element](name string, data []T) *array {
	a := ir.ArrayOf(data, int64(len(data)))
	c := &content{ReaderAt: memoryFile(a.Data), name: name, size: int64(len(a.Data))}
	size := a.DType.Bits() / 8
	return &array{from: c, elem: element{dtype: a.DType, size: size}, n: int64(len(data)), stride: size}
}

// memoryFile is a byte slice as a file.
type memoryFile []byte

// ReadAt implements io.ReaderAt.
func (m memoryFile) ReadAt(b []byte, off int64) (int, error) {
	if off > int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(b, m[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
