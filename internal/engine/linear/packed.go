package linear

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
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
		p := op.Part{At: at + k0*o.row + n0*o.col, Stride: o.row, Rows: k1 - k0, Cols: n1 - n0, DstRow: kernel.GemmPanel, DstCol: 1}
		if o.col != 1 {
			p.Stride, p.Rows, p.Cols, p.DstRow, p.DstCol = o.col, n1-n0, k1-k0, 1, kernel.GemmPanel
		}
		b.Decode(dst, p)
	}
}

// maybeSparse reports whether b is multiplied as a sparse matrix if it is constant and has enough zeros: a single matrix whose rows or
// columns are contiguous.
func maybeSparse(b operand) bool {
	return b.count() == 1 && (b.row == 1 || b.col == 1) && spmm.Eligible(b.rows*b.cols)
}

// prepareSparse packs constant b, which is n.Packed or dense, as a sparse matrix, or returns nil if the dense one is multiplied faster.
func prepareSparse(n *op.Node, b *ir.Array, o operand, pool *op.Pool) *op.Prepared {
	if !maybeSparse(o) {
		return nil
	}
	var source spmm.Source
	if s, packed := n.Packed.(*op.Sparse); packed {
		if !spmm.Worthwhile(o.rows*o.cols, len(s.Values)) {
			return nil
		}
		source = spmm.At(s.Positions, s.Values, o.col, o.row, o.rows)
	} else {
		if !spmm.IsSparse(ir.View[float32](b)) {
			return nil
		}
		source = spmm.Dense(matrix(o, ir.View[float32](b), 0).T(), o.rows)
	}
	w := spmm.Pack(pool, o.cols, o.rows, source)
	return &op.Prepared{State: w, Bytes: w.Bytes(), Drops: []int{1}}
}
