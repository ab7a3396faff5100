package op

import (
	"encoding/binary"

	"github.com/mcompress/mcompress/ir"
)

// Packed is a constant of type Float that is in memory in a smaller form, such as indices into a codebook. Operators that accept it decode
// the part that they compute with. Its elements have no shape: they are in the order of the dense tensor.
type Packed interface {
	// Decode writes part p of the elements to dst. Several workers call it concurrently.
	Decode(dst []float32, p Part)
	// Bytes is the size in memory. It is known before the data are.
	Bytes() int64
}

// A Part is rows of elements: element j of row i is element At+i·Stride+j of the tensor, and is written to dst[i·DstRow+j·DstCol].
type Part struct {
	At, Stride, Rows, Cols int
	DstRow, DstCol         int
}

// A Lookup is a Packed whose elements are entries of a table, also of one of type Float16, which Cast makes a Float.
type Lookup struct {
	DType   ir.DType
	n, bits int
	indices []byte // nil while memory is only planned
	wide    []uint16
	table   []float32
}

// maxEntries is the limit of the size of a table.
const maxEntries = 1 << 16

// NewLookup returns the elements of a table of n entries at these indices, which must be valid and are nil if memory is only planned. It
// is nil if the dense tensor would not be larger.
func NewLookup(dt ir.DType, entries int, table []float32, elems int, indices []int64) *Lookup {
	l := &Lookup{DType: dt, n: elems, bits: 16}
	switch {
	case entries > maxEntries:
		return nil
	case entries <= 16:
		l.bits = 4
	case entries <= 256:
		l.bits = 8
	}
	size := 1 << min(l.bits, 8) // so that no index of these bits is out of range
	if l.bits == 16 {
		size = entries
	}
	l.table = make([]float32, size)
	copy(l.table, table)
	if l.Bytes() >= 4*int64(elems) {
		return nil
	}
	l.store(indices)
	return l
}

func (l *Lookup) store(indices []int64) {
	switch {
	case indices == nil:
	case l.bits == 16:
		l.wide = make([]uint16, l.n)
		for i, at := range indices {
			l.wide[i] = uint16(at)
		}
	case l.bits == 8:
		l.indices = make([]byte, l.n)
		for i, at := range indices {
			l.indices[i] = byte(at)
		}
	default:
		l.indices = make([]byte, (l.n+1)/2)
		for i, at := range indices {
			l.indices[i/2] |= byte(at) << (i % 2 * 4)
		}
	}
}

// As returns the elements as type dt, which represents them.
func (l *Lookup) As(dt ir.DType) *Lookup {
	other := *l
	other.DType = dt
	return &other
}

// Bytes is the size of indices and table.
func (l *Lookup) Bytes() int64 { return (int64(l.n)*int64(l.bits)+7)/8 + 4*int64(len(l.table)) }

// at is element i.
func (l *Lookup) at(i int) float32 {
	switch l.bits {
	case 4:
		return l.table[l.indices[i/2]>>(i%2*4)&15]
	case 8:
		return l.table[l.indices[i]]
	}
	return l.table[l.wide[i]]
}

// Decode implements Packed.
func (l *Lookup) Decode(dst []float32, p Part) {
	for i := range p.Rows {
		l.run(dst[i*p.DstRow:], p.DstCol, p.At+i*p.Stride, p.Cols, 1)
	}
}

// run decodes n elements from at on, times scale.
func (l *Lookup) run(dst []float32, step, at, n int, scale float32) {
	switch {
	case step != 1:
		for j := range n {
			dst[j*step] = l.at(at+j) * scale
		}
	case l.bits == 4:
		l.nibbles(dst[:n], at, scale)
	case l.bits == 8:
		table := (*[256]float32)(l.table)
		dst = dst[:n]
		for j, k := range l.indices[at : at+n] {
			dst[j] = table[k] * scale
		}
	default:
		dst = dst[:n]
		for j, k := range l.wide[at : at+n] {
			dst[j] = l.table[k] * scale
		}
	}
}

// nibbles decodes elements from at on, eight or two at a time.
func (l *Lookup) nibbles(dst []float32, at int, scale float32) {
	table := (*[16]float32)(l.table)
	if at%2 == 1 && len(dst) > 0 {
		dst[0] = l.at(at) * scale
		dst, at = dst[1:], at+1
	}
	src := l.indices[at/2:]
	for len(dst) >= 8 {
		to, k := (*[8]float32)(dst), binary.LittleEndian.Uint32(src)
		to[0], to[1] = table[k&15]*scale, table[k>>4&15]*scale
		to[2], to[3] = table[k>>8&15]*scale, table[k>>12&15]*scale
		to[4], to[5] = table[k>>16&15]*scale, table[k>>20&15]*scale
		to[6], to[7] = table[k>>24&15]*scale, table[k>>28]*scale
		dst, src = dst[8:], src[4:]
	}
	for j := range dst {
		dst[j] = table[src[j/2]>>(j%2*4)&15] * scale
	}
}

// A Scaled is the elements of a Lookup times a scale for each block of consecutive ones.
type Scaled struct {
	Values *Lookup
	Scales *Lookup   // the scales, or
	Floats []float32 // the same
	Block  int
}

// Bytes is the size of values and scales.
func (s *Scaled) Bytes() int64 {
	if s.Scales != nil {
		return s.Values.Bytes() + s.Scales.Bytes()
	}
	return s.Values.Bytes() + 4*int64(len(s.Floats))
}

// scale is that of a block.
func (s *Scaled) scale(block int) float32 {
	if s.Scales != nil {
		return s.Scales.at(block)
	}
	return s.Floats[block]
}

// Decode implements Packed. Divisions would take longer than the lookups of a row.
func (s *Scaled) Decode(dst []float32, p Part) {
	block, off := p.At/s.Block, p.At%s.Block
	blocks, rest := p.Stride/s.Block, p.Stride%s.Block
	for i := range p.Rows {
		s.row(dst[i*p.DstRow:], p, p.At+i*p.Stride, block, off)
		if block, off = block+blocks, off+rest; off >= s.Block {
			block, off = block+1, off-s.Block
		}
	}
}

// row decodes a row of p from element at on, which is element off of a block.
func (s *Scaled) row(dst []float32, p Part, at, block, off int) {
	for j := 0; j < p.Cols; block, off = block+1, 0 {
		n := min(p.Cols-j, s.Block-off)
		s.Values.run(dst[j*p.DstCol:], p.DstCol, at+j, n, s.scale(block))
		j += n
	}
}
