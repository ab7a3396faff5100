package gemm

import (
	"fmt"
	"sync"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A PackedInt is an 8-bit right operand, K×N, in the kernels' layout: blocks of intDepth rows, in them panels of 16
// columns, and in those four rows of a column next to each other. Products do not modify it.
type PackedInt struct {
	k, n   int
	signed bool
	data   []byte
	pairs  *pairing // nil if too many pairs of rows do not fit int16, or if the CPU does not need them

	mu   sync.Mutex
	sums []int32 // of the columns, as int8
}

// newPackedInt returns a matrix for Pack to fill.
func newPackedInt(k, n int, signed bool) *PackedInt {
	codes := packedIntBytes(k, n) - 4*int64(n)
	return &PackedInt{k: k, n: n, signed: signed, data: ir.AlignedBytes(codes), sums: make([]int32, n)}
}

// packedIntBytes is the size in bytes of a packed k×n matrix: that of the matrix, with k rounded up to a multiple of 4
// and n to one of 16, and 4 bytes for the sum of each column.
func packedIntBytes(k, n int) int64 {
	return int64(roundUp(k, kernel.GemmQuad))*int64(roundUp(n, kernel.GemmPanel)) + 4*int64(n)
}

// PackInt packs all of a k×n matrix, in pairs if the CPU cannot multiply bytes without them.
func PackInt(p Pool, b Matrix[byte], k, n int, signed bool) *PackedInt {
	// VPDPBUSD and the twin need no pairs.
	if kernel.GemmIntWidth() == 1 {
		return packInt(p, b, k, n, signed)
	}
	return packPairs(p, b, k, n, signed)
}

// packPairs packs pairs, unless too many of them do not fit int16.
func packPairs(p Pool, b Matrix[byte], k, n int, signed bool) *PackedInt {
	// If more than 1/32 of the quads needed two parts, A is widened to int16 instead, which costs memory for a block of
	// A only. Pairs: 195 instead of 157 GOP/s for 128×768×768 (AVX2).
	if m := packInt(p, b, k, n, signed); m.pair(p) {
		return m
	}
	// Pairing has reordered the rows of the first matrix.
	return packInt(p, b, k, n, signed)
}

func packInt(p Pool, b Matrix[byte], k, n int, signed bool) *PackedInt {
	m := newPackedInt(k, n, signed)
	const cols = 8 * kernel.GemmPanel
	p.For((n+cols-1)/cols, func(i int) {
		m.Pack(0, i*cols, b.from(0, i*cols), k, min(cols, n-i*cols))
	})
	return m
}

// Bytes is the size of m in memory.
func (m *PackedInt) Bytes() int64 {
	if m.pairs == nil {
		return packedIntBytes(m.k, m.n)
	}
	return packedIntBytes(m.k, m.n) + m.pairs.bytes()
}

// Pack copies the elements of m that start at (k0, n0), rows by cols of them, from b. k0 must be a multiple of 4 and n0
// one of 16; rows and cols too unless they reach the end. Every element must be packed exactly once, since it is added
// to the sum of its column. Otherwise it is like PackedFloat.Pack.
func (m *PackedInt) Pack(k0, n0 int, b Matrix[byte], rows, cols int) {
	if !fits(k0, rows, m.k, kernel.GemmQuad) || !fits(n0, cols, m.n, kernel.GemmPanel) {
		panic(fmt.Sprintf("gemm: %d by %d elements do not fit at (%d, %d) of a packed %d by %d matrix", rows, cols,
			k0, n0, m.k, m.n))
	}
	b.check("B", rows, cols)
	for at := k0; at < k0+rows; {
		ks := around(at, intDepth, m.k)
		take := min(k0+rows, ks.to) - at
		to, panel := m.block(ks, n0)
		from := b.from(at-k0, 0)
		to = to[(at-ks.from)*kernel.GemmPanel:]
		kernel.PackQuads(to, panel, from.Data, from.Row, from.Col, take, cols, flip(m.signed))
		m.count(span{n0, n0 + cols}, to, panel, roundUp(take, kernel.GemmQuad))
		at += take
	}
}

// count adds k rows of panels to the sums of their columns.
func (m *PackedInt) count(cols span, panels []byte, panel, k int) {
	// Several workers pack rows of the same columns.
	m.mu.Lock()
	defer m.mu.Unlock()
	kernel.QuadSums(m.sums[cols.from:cols.to], panels, panel, k)
}

// fits reports whether a block of n elements may start at from: start and end must be multiples of step.
func fits(from, n, all, step int) bool {
	end := from + n
	return from >= 0 && n >= 0 && end <= all && from%step == 0 && (end%step == 0 || end == all)
}

// around is the block of size elements that contains index at.
func around(at, size, all int) span {
	from := at / size * size
	return span{from, min(from+size, all)}
}

// block is the panels of one block of rows, starting with the panel of column n0, and the size of a panel in bytes.
func (m *PackedInt) block(ks span, n0 int) (b []byte, panel int) {
	k := roundUp(ks.len(), kernel.GemmQuad)
	return m.data[ks.from*roundUp(m.n, kernel.GemmPanel)+n0*k:], kernel.GemmPanel * k
}

// panelAt is the number of the panel of the block of rows from k on, and column n.
func (m *PackedInt) panelAt(k, n int) int {
	return k/intDepth*(roundUp(m.n, kernel.GemmPanel)/kernel.GemmPanel) + n/kernel.GemmPanel
}

func (m *PackedInt) check(s Shape) {
	if m.k != s.K || m.n != s.N {
		panic(fmt.Sprintf("gemm: packed B is %d by %d, want %d by %d", m.k, m.n, s.K, s.N))
	}
}
