package quant

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A sparseMatrix is a k×n matrix of bytes most of which are zero points. Element (k, n) is at k·row + n·col.
type sparseMatrix struct {
	data     []byte
	signed   bool
	k, n     int
	row, col int
	zeros    []int32 // of each column
}

// isSparse reports whether so many elements are zero points that products are faster than dense ones by cost model d.
func (m *sparseMatrix) isSparse(d spmm.Density) bool {
	if len(m.data) != m.k*m.n || m.row != 1 && m.col != 1 {
		return false
	}
	zero := !slices.ContainsFunc(m.zeros, func(z int32) bool { return z != 0 })
	return d.Counts(len(m.data), 1, func(buf []byte, from, to int) []byte {
		if zero {
			return m.data[from:to]
		}
		for i := from; i < to; i++ {
			column := i % m.n
			if m.row == 1 {
				column = i / m.k
			}
			buf[i-from] = m.data[i] ^ byte(m.zeros[column])
		}
		return buf[:to-from]
	})
}

// pack is the transposed matrix, times a scale for each column.
func (m *sparseMatrix) pack(pool *op.Pool, scales []float32) *spmm.Matrix {
	source, v := m.source(scales)
	return spmm.Pack(pool, m.n, m.k, source, v)
}

// source lists the elements of the transposed matrix. Values minus zero points are int8, or if these are not in the middle of the range,
// float16, which represents them.
func (m *sparseMatrix) source(scales []float32) (spmm.Source, kernel.SparseValues) {
	v, middle := kernel.SparseValues{Type: kernel.SparseInt8, Scales: scales}, int32(128)
	if m.signed {
		middle = 0
	}
	for _, z := range m.zeros {
		if z != middle {
			v.Type = kernel.SparseHalf
		}
	}
	elements := gemm.Matrix[byte]{Data: m.data, Row: m.col, Col: m.row}
	return spmm.Quantized(elements, m.k, m.signed, m.zeros), v
}

// sparsify stores w as a sparse matrix if it is multiplied faster so; see Arrange.
func (w *weight) sparsify(k, n, row, col int, pool *op.Pool) bool {
	source, v := w.Source(spmm.QuantizedDensity, k, n, row, col)
	if source == nil {
		return false
	}
	w.sparse, w.row, w.col = spmm.Pack(pool, n, k, source, v), row, col
	w.x, w.zero, w.scale = nil, nil, nil
	return true
}

// Source lists the nonzero elements of the transposed matrix, if element (k, n) of a k×n one is k·row + n·col, and types its values. It is nil
// unless these have a scale for each column and are so few that products are faster than dense ones by cost model d.
func (w *weight) Source(d spmm.Density, k, n, row, col int) (spmm.Source, kernel.SparseValues) {
	if w.x == nil || w.scale == nil || !isByte(w.x.DType) || k*n != w.total || w.along(k, n, row, col) < k {
		return nil, kernel.SparseValues{}
	}
	m := &sparseMatrix{data: w.x.Data, signed: w.x.DType == ir.Int8, k: k, n: n, row: row, col: col, zeros: make([]int32, n)}
	scales := make([]float32, n)
	for j := range n {
		at := w.runFrom(j * col).scale
		scales[j], m.zeros[j] = w.scale[at], int32(w.zeroAt(at))
		if s := float64(scales[j]); math.IsInf(s, 0) || math.IsNaN(s) || math.Signbit(s) {
			return nil, kernel.SparseValues{} // zero times it is not zero, or -0, which the dequantized weight does not count as zero
		}
	}
	if !m.isSparse(d) {
		return nil, kernel.SparseValues{}
	}
	return m.source(scales)
}

// Sparse is the transposed matrix of these distances, nil if it is not sparse or not arranged so.
func (w *weight) Sparse(row, col int) *spmm.Matrix {
	if w.row != row || w.col != col {
		return nil
	}
	return w.sparse
}
