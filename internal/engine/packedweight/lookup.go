package packedweight

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A Lookup is an op.Packed whose elements are entries of a table, also of one of type Float16, which Cast makes a
// Float.
type Lookup struct {
	DType   ir.DType
	n, bits int
	indices []byte // nil while memory is only planned
	wide    []uint16
	table   []float32
}

// maxEntries is the limit of the size of a table.
const maxEntries = 1 << 16

// NewLookup returns the elements of a table of n entries at these indices, which must be valid and are nil if memory is
// only planned. It is nil if the dense tensor would not be larger.
func NewLookup(dt ir.DType, entries int, table []float32, elems int, indices []int64) *Lookup {
	l := &Lookup{DType: dt, n: elems, bits: 16}
	switch {
	// Indices have at most 16 bits.
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
	// With a table of its own size, the dense weight is smaller.
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

// rows are the elements, of indices of 4 or 8 bits, for decoding.
func (l *Lookup) rows() kernel.Lookup {
	return kernel.Lookup{Bits: l.bits, Indices: l.indices, Table: l.table}
}

// Decode implements op.Packed.
func (l *Lookup) Decode(dst []float32, p op.Part) {
	if l.bits <= 8 {
		rows := l.rows()
		decodeRows(&rows, dst, p)
		return
	}
	for i := range p.Rows {
		for j := range p.Cols {
			dst[i*p.DstRow+j*p.DstCol] = l.at(p.At + i*p.Stride + j)
		}
	}
}

// decodeRows writes part p of l to dst. Rows that become columns are decoded a tile at a time.
func decodeRows(l *kernel.Lookup, dst []float32, p op.Part) {
	if p.DstCol == 1 {
		l.Decode(dst, p.DstRow, p.At, p.Stride, p.Rows, p.Cols)
		return
	}
	const high, wide = 16, 64
	var tile [high * wide]float32
	for i := 0; i < p.Rows; i += high {
		for j := 0; j < p.Cols; j += wide {
			rows, cols := min(high, p.Rows-i), min(wide, p.Cols-j)
			l.Decode(tile[:], wide, p.At+i*p.Stride+j, p.Stride, rows, cols)
			for row := range rows {
				to := dst[(i+row)*p.DstRow+j*p.DstCol:]
				for col, v := range tile[row*wide:][:cols] {
					to[col*p.DstCol] = v
				}
			}
		}
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

// Decode implements op.Packed.
func (s *Scaled) Decode(dst []float32, p op.Part) {
	if s.Values.bits <= 8 && (s.Scales == nil || s.Scales.bits == 8) {
		rows := s.Values.rows()
		rows.Block, rows.Scales = s.Block, s.Floats
		if s.Scales != nil {
			rows.Scales, rows.Blocks = s.Scales.table, s.Scales.indices
		}
		decodeRows(&rows, dst, p)
		return
	}
	for i := range p.Rows {
		for j := range p.Cols {
			at := p.At + i*p.Stride + j
			dst[i*p.DstRow+j*p.DstCol] = s.Values.at(at) * s.scale(at/s.Block)
		}
	}
}

// scale is that of a block.
func (s *Scaled) scale(block int) float32 {
	if s.Scales != nil {
		return s.Scales.at(block)
	}
	return s.Floats[block]
}
