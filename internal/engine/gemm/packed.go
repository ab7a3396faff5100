package gemm

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A PackedFloat is a float32 matrix on the right, K×N, laid out as the kernels read it: blocks of
// depth rows, and in them panels of 16 columns. It is not changed by multiplying.
type PackedFloat struct {
	k, n int
	data []float32
}

// NewPackedFloat returns a matrix of zeros for Pack to fill.
func NewPackedFloat(k, n int) *PackedFloat {
	return &PackedFloat{k, n, kernel.Words[float32](ir.AlignedBytes(PackedFloatBytes(k, n)))}
}

// PackedFloatBytes is the memory that a packed k×n matrix holds on to: that of the matrix, with n
// rounded up to a multiple of 16.
func PackedFloatBytes(k, n int) int64 {
	return 4 * int64(k) * int64(roundUp(n, kernel.GemmPanel))
}

// PackFloat packs all of a k×n matrix.
func PackFloat(p Pool, b Matrix[float32], k, n int) *PackedFloat {
	m := NewPackedFloat(k, n)
	const cols = 8 * kernel.GemmPanel
	p.For((n+cols-1)/cols, func(i int) {
		m.Pack(0, i*cols, b.from(0, i*cols), k, min(cols, n-i*cols))
	})
	return m
}

// Bytes is the memory that m holds on to.
func (m *PackedFloat) Bytes() int64 { return PackedFloatBytes(m.k, m.n) }

// Pack takes the elements of m that start at (k0, n0), rows by cols of them, from b. n0 must be a
// multiple of 16, and cols too unless they reach the last column. A weight that is stored K×N
// comes in blocks of its rows, one that is stored N×K in blocks of 16 rows or a multiple, as b.T();
// neither need ever be in memory whole. Blocks may be packed in any order, and at the same time.
func (m *PackedFloat) Pack(k0, n0 int, b Matrix[float32], rows, cols int) {
	if !fits(k0, rows, m.k, 1) || !fits(n0, cols, m.n, kernel.GemmPanel) {
		panic(fmt.Sprintf("gemm: %d by %d elements do not fit at (%d, %d) of a packed %d by %d matrix", rows, cols, k0, n0, m.k, m.n))
	}
	b.check("B", rows, cols)
	for at := k0; at < k0+rows; {
		ks := around(at, depth, m.k)
		take := min(k0+rows, ks.to) - at
		to, from := m.block(ks, n0), b.from(at-k0, 0)
		kernel.PackPanels(to.Data[(at-ks.from)*to.K:], to.Panel, from.Data, from.Row, from.Col, take, cols)
		at += take
	}
}

// block is the panels of some rows, which are a block, from the panel on that starts at column n0.
func (m *PackedFloat) block(ks span, n0 int) kernel.GemmB {
	data := m.data[ks.from*roundUp(m.n, kernel.GemmPanel)+n0*ks.len():]
	return kernel.GemmB{Data: data, Panel: kernel.GemmPanel * ks.len(), K: kernel.GemmPanel}
}

func (m *PackedFloat) check(s Shape) {
	if m.k != s.K || m.n != s.N {
		panic(fmt.Sprintf("gemm: packed B is %d by %d, want %d by %d", m.k, m.n, s.K, s.N))
	}
}
