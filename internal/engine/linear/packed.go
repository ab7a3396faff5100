package linear

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// decodes reports whether input i may be a packed constant: a right operand whose rows or columns are contiguous.
func decodes(n *op.Node, i int, b *ir.Array) bool {
	if i != 1 || b == nil {
		return i == 1
	}
	o, err := operandOf(n, "B", b)
	return err == nil && packs(b) && (o.row == 1 || o.col == 1)
}

// arrange arranges a right operand that is a single matrix.
func arrange(n *op.Node, _ int, b *ir.Array, packed op.Arranged, pool *op.Pool) {
	if o, err := operandOf(n, "B", b); err == nil && o.count() == 1 {
		packed.Arrange(o.rows, o.cols, o.row, o.col, pool)
	}
}

// packed sets B of f to the matrix at offset at of packed constant b.
func (o operand) packed(f *gemm.FloatProduct, b op.Packed, at int) {
	if arranged, ok := b.(op.Arranged); ok && o.count() == 1 {
		f.Quantized = arranged.Matrix(o.row, o.col)
	}
	if f.Quantized == nil {
		f.Panels = o.decoded(b, at)
	}
}

// decoded are the panels of the matrix whose first element is at offset at of packed constant b.
func (o operand) decoded(b op.Packed, at int) gemm.Panels[float32] {
	return func(dst []float32, k0, k1, n0, n1 int) {
		p := op.Part{At: at + k0*o.row + n0*o.col, Stride: o.row, Rows: k1 - k0, Cols: n1 - n0,
			DstRow: kernel.GemmPanel, DstCol: 1}
		// A packed constant decodes adjacent elements, which are columns of a transposed matrix.
		if o.col != 1 {
			p.Stride, p.Rows, p.Cols, p.DstRow, p.DstCol = o.col, n1-n0, k1-k0, 1, kernel.GemmPanel
		}
		b.Decode(dst, p)
	}
}

// maybeSparse reports whether b is multiplied as a sparse matrix if it is constant and has enough zeros: a single
// matrix whose rows or columns are contiguous.
func maybeSparse(b operand) bool {
	return b.count() == 1 && (b.row == 1 || b.col == 1) && spmm.FloatDensity.Eligible(b.rows*b.cols)
}

// prepareSparse packs constant b, which is n.Packed or dense, as a sparse matrix, or returns nil if the dense one is
// multiplied faster.
func prepareSparse(n *op.Node, b *ir.Array, o operand, pool *op.Pool) *op.Prepared {
	if !maybeSparse(o) {
		return nil
	}
	source, values := sourceOf(n, b, o)
	if source == nil {
		return nil
	}
	// Transposed, as spmm.Right takes it: its rows are columns of the result.
	w := spmm.Pack(pool, o.cols, o.rows, source, values)
	return &op.Prepared{State: w, Bytes: w.Bytes(), Drops: []int{1}}
}

// sourceOf lists the nonzero elements of b, unless the dense one is multiplied faster.
func sourceOf(n *op.Node, b *ir.Array, o operand) (spmm.Source, kernel.SparseValues) {
	s, packed := n.Packed.(*packedweight.Sparse)
	switch {
	case packed && spmm.FloatDensity.Worthwhile(o.rows*o.cols, len(s.Values)):
		return spmm.At(s.Positions, s.Values, o.col, o.row, o.rows), kernel.SparseValues{}
	case packed:
	case b.DType == ir.Float && spmm.IsSparse(spmm.FloatDensity, ir.View[float32](b)):
		return spmm.Dense(matrix(o, ir.View[float32](b), 0).T(), o.rows), kernel.SparseValues{}
	case b.DType == ir.Float16 && spmm.IsSparse(spmm.FloatDensity, ir.View[uint16](b)):
		v := kernel.SparseValues{Type: kernel.SparseHalf, Scales: slices.Repeat([]float32{1}, o.cols)}
		return spmm.Halves(matrix(o, ir.View[uint16](b), 0).T(), o.rows), v
	}
	return nil, kernel.SparseValues{}
}

// A sparseWeight is a Packed that is in memory as a sparse matrix.
type sparseWeight interface {
	// Sparse is the transposed matrix of these distances, nil if there is none.
	Sparse(row, col int) *spmm.Matrix
}

// sparse is the matrix B in sparse form, nil if it is not.
func (p *product) sparse(c *op.Call) *spmm.Matrix {
	if w, ok := c.State.(*spmm.Matrix); ok {
		return w
	}
	if w, ok := c.Packed.(sparseWeight); ok && p.b.count() == 1 {
		return w.Sparse(p.b.row, p.b.col)
	}
	return nil
}
