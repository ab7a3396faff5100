package spmm

import (
	"slices"
	"unsafe"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// A Matrix is a sparse matrix in the kernels' layout: groups of consecutive rows, and in them blocks of gemm.Depth
// columns. Products do not modify it.
type Matrix struct {
	rows, k int
	values  kernel.SparseType
	groups  []group
	bytes   int64
}

// A group is the rows from one to another, which is a multiple of four or the last row.
type group struct {
	from, to, nonzeros int
	magnitude          float64 // the largest sum of the values of one sign of a row
	blocks             []*kernel.SparseRows
}

// groupRows is the number of rows of a group.
const groupRows = 128

// Pack brings the elements of a matrix of this number of rows and k columns into the layout of the kernels. Scales are
// those of all rows.
func Pack(p gemm.Pool, rows, k int, source Source, v kernel.SparseValues) *Matrix {
	m := &Matrix{rows: rows, k: k, values: v.Type, groups: make([]group, (rows+groupRows-1)/groupRows)}
	p.For(len(m.groups), func(i int) {
		g := &m.groups[i]
		g.from, g.to = i*groupRows, min(rows, (i+1)*groupRows)
		own := kernel.SparseValues{Type: v.Type}
		if v.Type != kernel.SparseFloat {
			own.Scales = make([]float32, groupRows) // also of missing rows of the last quad
			copy(own.Scales, v.Scales[g.from:g.to])
		}
		g.pack(source(g.from, g.to), k, own)
	})
	for _, g := range m.groups {
		m.bytes += g.bytes()
	}
	return m
}

// Bytes is the size of m in memory.
func (m *Matrix) Bytes() int64 { return m.bytes }

// Magnitude is the largest sum of the stored values of one sign of a row: the magnitude of sums with values between two
// limits, one of which is at most zero and the other one at least zero, and whose difference is 1.
func (m *Matrix) Magnitude() float64 {
	largest := 0.0
	for _, g := range m.groups {
		largest = max(largest, g.magnitude)
	}
	return largest
}

// At is one element. It searches the row.
func (m *Matrix) At(row, col int) float32 {
	g := m.groups[row/groupRows]
	return g.blocks[col/gemm.Depth].At(row-g.from, col%gemm.Depth)
}

func (g *group) bytes() int64 {
	n := int64(unsafe.Sizeof(*g))
	for _, b := range g.blocks {
		n += b.Bytes() + int64(unsafe.Sizeof(*b)+unsafe.Sizeof(b))
	}
	if len(g.blocks) > 0 {
		n += 4 * int64(len(g.blocks[0].Scales))
	}
	return n
}

// pack fills the blocks of g. Rows of like counts share a quad, so that little is padded.
func (g *group) pack(r *Rows, k int, v kernel.SparseValues) {
	g.nonzeros, g.magnitude = len(r.values), r.magnitude()
	b := groupPacker{
		// with missing rows of the last quad
		cols: make([][]int32, (g.to-g.from+kernel.SparseQuad-1)/kernel.SparseQuad*kernel.SparseQuad),
		rest: make([]int, g.to-g.from),
	}
	b.values, b.order = make([][]float32, len(b.cols)), make([]uint32, len(b.cols))
	for from := 0; from < k; from += gemm.Depth {
		b.take(r, min(from+gemm.Depth, k))
		g.blocks = append(g.blocks, b.block(from, min(gemm.Depth, k-from), v))
	}
}

// A groupPacker is the state of the packing of a group: elements by row that are in the current block.
type groupPacker struct {
	cols   [][]int32
	values [][]float32
	rest   []int    // number of elements of each row in the blocks before
	order  []uint32 // rows in the order of their number of elements, which is in the upper half
}

// take takes the elements of the columns before to.
func (b *groupPacker) take(r *Rows, to int) {
	for row := range b.order {
		if row < len(b.rest) {
			cols, values := r.of(row)
			cols, values = cols[b.rest[row]:], values[b.rest[row]:]
			n, _ := slices.BinarySearch(cols, int32(to))
			b.cols[row], b.values[row] = cols[:n], values[:n]
			b.rest[row] += n
		}
		// Sorted as numbers, the count is the first key and the row the second one, so that the order does not depend on
		// the sorting algorithm.
		b.order[row] = uint32(len(b.cols[row]))<<16 | uint32(row)
	}
	slices.Sort(b.order)
}

// block makes quads of the elements, whose columns start at from.
func (b *groupPacker) block(from, depth int, v kernel.SparseValues) *kernel.SparseRows {
	elems := 0
	// The last of each four, which has the most, determines the length of the quad: the others are padded to it.
	for i := kernel.SparseQuad - 1; i < len(b.order); i += kernel.SparseQuad {
		elems += kernel.SparseQuad * int(b.order[i]>>16)
	}
	s := kernel.NewSparseRows(depth, len(b.order)/kernel.SparseQuad, elems, v)
	for quad := range slices.Chunk(b.order, kernel.SparseQuad) {
		var rows [kernel.SparseQuad]int
		var cols [kernel.SparseQuad][]int32
		var values [kernel.SparseQuad][]float32
		for i, o := range quad {
			row := int(o & 0xffff)
			rows[i], cols[i], values[i] = row, b.cols[row], b.values[row]
		}
		s.Append(rows, from, cols, values)
	}
	return s
}

// parts divides the groups into at most n parts of about as many elements, of at most maxRows rows each.
func (m *Matrix) parts(n int) [][]group {
	total := 0
	for _, g := range m.groups {
		total += g.nonzeros
	}
	var parts [][]group
	// Groups are not divided, so a part ends with the group in which it reaches its size.
	size, used, from := total/n+1, 0, 0
	for i, g := range m.groups {
		if used >= size || g.to-m.groups[from].from > maxRows {
			parts = append(parts, m.groups[from:i])
			used, from = 0, i
		}
		used += g.nonzeros
	}
	return append(parts, m.groups[from:])
}
