package linear

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
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
