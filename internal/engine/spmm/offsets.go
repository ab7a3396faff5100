package spmm

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// Offsets are where the rows of a dense matrix that is not packed start, by block of gemm.Depth rows. at has one of
// each row.
func Offsets(at []int32) []kernel.SparseOffsets {
	blocks := make([]kernel.SparseOffsets, 0, (len(at)+gemm.Depth-1)/gemm.Depth)
	for from := 0; from < len(at); from += gemm.Depth {
		blocks = append(blocks, kernel.NewSparseOffsets(at[from:min(from+gemm.Depth, len(at))]))
	}
	return blocks
}

// A Part is consecutive rows of a matrix.
type Part struct {
	From, To int
	groups   []group
}

// Parts divides the matrix into at least n parts of about as many elements, of at most maxRows rows each, if it has
// enough rows.
func (m *Matrix) Parts(n int) []Part {
	var parts []Part
	for _, groups := range m.parts(n) {
		parts = append(parts, Part{groups[0].from, groups[len(groups)-1].to, groups})
	}
	return parts
}

// PartSums is the number of elements of the sums of a part of a matrix of this number of rows, for this number of
// columns.
func PartSums(rows, cols int) int {
	return min((rows+kernel.SparseQuad-1)/kernel.SparseQuad*kernel.SparseQuad, maxRows) * cols
}

// MultiplyAt stores the products of the rows and columns of a dense matrix, as kernel.SparseRows, or adds them to sums.
// work has kernel.SparseWork elements.
func (p Part) MultiplyAt(sums, x []float32, rows []kernel.SparseOffsets, cols int, add bool, work []float32) {
	for b, at := range rows {
		for _, g := range p.groups {
			g.blocks[b].MultiplyAt(sums[(g.from-p.From)*cols:], x, at, cols, add || b > 0, work)
		}
	}
}
