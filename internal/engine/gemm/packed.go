package gemm

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A PackedFloat is a float32 right operand, K×N, in the kernels' layout: blocks of depth rows, and in them panels of 16
// columns. Products do not modify it.
type PackedFloat struct {
	k, n int
	data []float32
}

// newPackedFloat returns a matrix of zeros for Pack to fill.
func newPackedFloat(k, n int) *PackedFloat {
	return &PackedFloat{k, n, kernel.Words[float32](ir.AlignedBytes(packedFloatBytes(k, n)))}
}

// packedFloatBytes is the size in bytes of a packed k×n matrix: that of the matrix, with n rounded up to a multiple of
// 16.
func packedFloatBytes(k, n int) int64 {
	return 4 * int64(k) * int64(roundUp(n, kernel.GemmPanel))
}

// PackFloat packs all of a k×n matrix.
func PackFloat(p Pool, b Matrix[float32], k, n int) *PackedFloat {
	m := newPackedFloat(k, n)
	const cols = 8 * kernel.GemmPanel
	p.For((n+cols-1)/cols, func(i int) {
		m.Pack(0, i*cols, b.from(0, i*cols), k, min(cols, n-i*cols))
	})
	return m
}

// Bytes is the size of m in memory.
func (m *PackedFloat) Bytes() int64 { return packedFloatBytes(m.k, m.n) }

// Pack copies the elements of m that start at (k0, n0), rows by cols of them, from b. n0 must be a multiple of 16, and
// cols too unless they reach the last column. A weight stored K×N is packed by blocks of its rows, one stored N×K by
// blocks of 16 rows or a multiple, as b.T(); neither needs to be in memory as a whole. Blocks may be packed in any
// order, and concurrently.
func (m *PackedFloat) Pack(k0, n0 int, b Matrix[float32], rows, cols int) {
	if !fits(k0, rows, m.k, 1) || !fits(n0, cols, m.n, kernel.GemmPanel) {
		panic(fmt.Sprintf("gemm: %d by %d elements do not fit at (%d, %d) of a packed %d by %d matrix", rows, cols,
			k0, n0, m.k, m.n))
	}
	b.check("B", rows, cols)
	// Rows of the request may be parts of several blocks, each of which has a layout of its own.
	for at := k0; at < k0+rows; {
		ks := around(at, depth, m.k)
		take := min(k0+rows, ks.to) - at
		to, from := m.block(ks, n0), b.from(at-k0, 0)
		kernel.PackPanels(to.Data[(at-ks.from)*to.K:], to.Panel, from.Data, from.Row, from.Col, take, cols)
		at += take
	}
}

// block is the panels of one block of rows, starting with the panel of column n0.
func (m *PackedFloat) block(ks span, n0 int) kernel.GemmB {
	data := m.data[ks.from*roundUp(m.n, kernel.GemmPanel)+n0*ks.len():]
	return kernel.GemmB{Data: data, Panel: kernel.GemmPanel * ks.len(), K: kernel.GemmPanel}
}

func (m *PackedFloat) check(s Shape) { checkSizes("packed", m.k, m.n, s) }

// checkSizes panics unless a form of B is that of the shape.
func checkSizes(form string, k, n int, s Shape) {
	if k != s.K || n != s.N {
		panic(fmt.Sprintf("gemm: %s B is %d by %d, want %d by %d", form, k, n, s.K, s.N))
	}
}
