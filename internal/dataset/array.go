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
	// rows is how many samples there are; row is the type and shape of one, its name the
	// column's in messages.
	rows() int64
	row() ir.Spec
	// held is the bytes of n samples while they are loaded.
	held(n int64) int64
	// load reads samples, in two steps as feed.load does.
	load(index []int) (func() (*ir.Array, error), error)
	// random makes load fast in any order.
	random(dir string) error
}

// An array is a column whose samples have a fixed size in a file.
type array struct {
	from        *content
	name        string // of the array in its file; empty where the file is one array
	elem        element
	n           int64
	shape       []int64 // of one sample
	off, stride int64   // of sample 0, and from each to the next
	fortran     bool    // the first axis varies fastest; off is that of the whole
}

// An element is how an element stands in a file.
type element struct {
	dtype ir.DType
	size  int64 // bytes
	swap  int64 // width of the words whose bytes are the wrong way round; 0 for none
	runes bool  // of strings: words of 4 bytes, not bytes
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
	if a.elem.dtype == ir.String {
		return n * (2*a.rowBytes() + 16*a.elems())
	}
	return n * a.rowBytes()
}

// end is where the array's bytes end in its file.
func (a *array) end() int64 {
	if a.n == 0 {
		return a.off
	}
	if a.fortran {
		return a.off + a.n*a.rowBytes()
	}
	return a.off + (a.n-1)*a.stride + a.rowBytes()
}

// check holds the header against the file and against what a sample may take. Shapes are
// valid by then, so that nothing wraps.
func (a *array) check() error {
	if a.held(1) > maxSample {
		return fmt.Errorf("%s: a sample %s takes %d bytes; at most %d are read", a.row().Name, a.row(), a.held(1), maxSample)
	}
	if a.rowBytes() == 0 && a.n > maxEmpty {
		return fmt.Errorf("%s: %d samples without any bytes", a.row().Name, a.n)
	}
	return a.from.holds(a.end())
}

// maxEmpty bounds samples that take nothing from the file, but do from memory.
const maxEmpty = 1 << 20

func (a *array) random(dir string) error {
	if s, ok := a.from.ReaderAt.(*stream); ok {
		if err := s.keep(dir, a.end()); err != nil {
			return fmt.Errorf("%s: %w", a.row().Name, err)
		}
	}
	return nil
}

func (a *array) load(index []int) (func() (*ir.Array, error), error) {
	raw := ir.AlignedBytes(int64(len(index)) * a.rowBytes())
	for at := 0; at < len(index); {
		n := following(index[at:])
		part := raw[int64(at)*a.rowBytes():][:int64(n)*a.rowBytes()]
		if err := a.read(part, int64(index[at]), int64(n)); err != nil {
			return nil, fmt.Errorf("%s: sample %d: %w", a.row().Name, index[at], err)
		}
		at += n
	}
	return func() (*ir.Array, error) { return a.decode(raw, int64(len(index))) }, nil
}

// following is how many samples at the start of index follow one another in the file.
func following(index []int) int {
	n := 1
	for n < len(index) && index[n] == index[n-1]+1 {
		n++
	}
	return n
}

// read fills raw with n samples from first on.
func (a *array) read(raw []byte, first, n int64) error {
	size := a.rowBytes()
	switch {
	case size == 0:
		return nil
	case a.fortran:
		return a.gather(raw, first, n)
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

// gather reads samples whose elements lie a.n elements apart: element after element of
// the row, each of all n samples at once.
func (a *array) gather(raw []byte, first, n int64) error {
	size, row := a.elem.size, a.rowBytes()
	same := make([]byte, n*size)
	at := make([]int64, len(a.shape)) // the position in the row
	for k := range a.elems() {
		off, step := int64(0), a.n
		for d, i := range at {
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

// next moves a position to the next one in row-major order.
func next(at, shape []int64) {
	for d := len(at) - 1; d >= 0; d-- {
		if at[d]++; at[d] < shape[d] {
			return
		}
		at[d] = 0
	}
}

// decode makes a tensor of n samples as they stand in the file.
func (a *array) decode(raw []byte, n int64) (*ir.Array, error) {
	swap(raw, a.elem.swap)
	shape := append([]int64{n}, a.shape...)
	if a.elem.dtype == ir.String {
		text, err := a.text(raw, n)
		return ir.TextOf(text, shape...), err
	}
	if a.elem.dtype == ir.Bool {
		for i, b := range raw {
			raw[i] = min(b, 1)
		}
	}
	return &ir.Array{DType: a.elem.dtype, Shape: shape, Data: raw}, nil
}

// swap reverses words of that many bytes.
func swap(raw []byte, width int64) {
	if width < 2 {
		return
	}
	for ; int64(len(raw)) >= width; raw = raw[width:] {
		slices.Reverse(raw[:width])
	}
}

// text are the strings of n samples, which are filled with zeros to their width.
func (a *array) text(raw []byte, n int64) ([]string, error) {
	text := make([]string, 0, n*a.elems())
	for ; len(raw) > 0; raw = raw[a.elem.size:] {
		item := raw[:a.elem.size]
		if !a.elem.runes {
			text = append(text, strings.TrimRight(string(item), "\x00"))
			continue
		}
		var b strings.Builder
		for ; len(item) > 0; item = item[4:] {
			r := rune(uint32(item[0]) | uint32(item[1])<<8 | uint32(item[2])<<16 | uint32(item[3])<<24)
			if !utf8.ValidRune(r) {
				return nil, fmt.Errorf("%s: a string holds %#x, which is no character", a.row().Name, uint32(r))
			}
			b.WriteRune(r)
		}
		text = append(text, strings.TrimRight(b.String(), "\x00"))
	}
	return text, nil
}

// inMemory is a column of elements that were read already.
func inMemory[T ir.Element](name string, data []T) *array {
	a := ir.ArrayOf(data, int64(len(data)))
	c := &content{ReaderAt: memory(a.Data), name: name, size: int64(len(a.Data))}
	size := a.DType.Bits() / 8
	return &array{from: c, elem: element{dtype: a.DType, size: size}, n: int64(len(data)), stride: size}
}

// memory is bytes as a file.
type memory []byte

// ReadAt is io.ReaderAt's.
func (m memory) ReadAt(b []byte, off int64) (int, error) {
	if off > int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(b, m[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
