package kernel

import (
	"encoding/binary"
	"math/bits"
)

// A Lookup is elements stored as indices into a table.
type Lookup struct {
	Bits    int       // of an index: 4, two in a byte, the lower bits first, or 8
	Indices []byte    // of the elements
	Table   []float32 // 16 or 256 entries
	Block   int       // consecutive elements that share a scale; 0 without scales
	Scales  []float32 // of blocks, or a table of 256
	Blocks  []byte    // indices into the table; nil without one
}

// Decode writes rows of elements to dst, where they are dstRow apart: those of row i are cols from at+i·stride on.
func (l *Lookup) Decode(dst []float32, dstRow, at, stride, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	end := at + (rows-1)*stride + cols
	within("dst", len(dst), (rows-1)*dstRow+cols)
	within("indices", len(l.Indices), (end*l.Bits+7)/8)
	within("table", len(l.Table), 1<<l.Bits)
	if l.Block > 0 {
		scales := (end + l.Block - 1) / l.Block
		if l.Blocks != nil {
			within("blocks", len(l.Blocks), scales)
			scales = 256
		}
		within("scales", len(l.Scales), scales)
	}
	done := l.decodeBulk(dst, dstRow, at, stride, rows, cols)
	for i := 0; i < rows && done < cols; i++ {
		l.decodeGo(dst[i*dstRow+done:i*dstRow+cols], at+i*stride+done)
	}
}

// aligned reports whether each eight elements of rows begin at a whole byte and have one scale, in blocks of a power of
// two.
func (l *Lookup) aligned(at, stride int) bool {
	if l.Block == 0 {
		return l.Bits == 8 || (at|stride)%2 == 0
	}
	return l.Block >= 8 && bits.OnesCount(uint(l.Block)) == 1 && (at|stride)%8 == 0
}

// decodeGo decodes the elements from at on, block by block. Divisions would take longer than the lookups of a block.
func (l *Lookup) decodeGo(dst []float32, at int) {
	if l.Block == 0 {
		l.run(dst, at, 1)
		return
	}
	for block, left := at/l.Block, l.Block-at%l.Block; len(dst) > 0; block, left = block+1, l.Block {
		n := min(len(dst), left)
		l.run(dst[:n], at, l.scale(block))
		dst, at = dst[n:], at+n
	}
}

func (l *Lookup) scale(block int) float32 {
	if l.Blocks != nil {
		block = int(l.Blocks[block])
	}
	return l.Scales[block]
}

// run decodes the elements from at on, which have one scale.
func (l *Lookup) run(dst []float32, at int, scale float32) {
	if l.Bits == 4 {
		l.nibbles(dst, at, scale)
		return
	}
	table := (*[256]float32)(l.Table)
	for i, k := range l.Indices[at : at+len(dst)] {
		dst[i] = table[k] * scale
	}
}

// nibbles decodes elements of 4 bits, eight or one at a time.
func (l *Lookup) nibbles(dst []float32, at int, scale float32) {
	table := (*[16]float32)(l.Table)
	if at%2 == 1 && len(dst) > 0 {
		dst[0] = table[l.Indices[at/2]>>4] * scale
		dst, at = dst[1:], at+1
	}
	src := l.Indices[at/2:]
	for len(dst) >= 8 {
		to, k := (*[8]float32)(dst), binary.LittleEndian.Uint32(src)
		to[0], to[1] = table[k&15]*scale, table[k>>4&15]*scale
		to[2], to[3] = table[k>>8&15]*scale, table[k>>12&15]*scale
		to[4], to[5] = table[k>>16&15]*scale, table[k>>20&15]*scale
		to[6], to[7] = table[k>>24&15]*scale, table[k>>28]*scale
		dst, src = dst[8:], src[4:]
	}
	for i := range dst {
		dst[i] = table[src[i/2]>>(i%2*4)&15] * scale
	}
}
