package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// maybeSparse reports whether constant weights of this shape are multiplied as a sparse matrix if they have enough zeros: those of one group
// that Winograd's algorithm does not transform.
func maybeSparse(n *op.Node, w *ir.Array) bool {
	return w.DType == ir.Float && len(w.Shape) > 2 && n.Int("group", 1) == 1 && !winogradFits(n, w) && spmm.Eligible(int(w.Elems()))
}

// prepareSparse packs constant weights as a sparse matrix, or returns nil if the dense one is multiplied faster.
func prepareSparse(n *op.Node, w *ir.Array, p *op.Pool) *op.Prepared {
	if !maybeSparse(n, w) || !spmm.IsSparse(spmm.FloatDensity, ir.View[float32](w)) {
		return nil
	}
	rows, depth := int(w.Shape[0]), int(op.Product(w.Shape[1:]))
	m := spmm.Pack(p, rows, depth, spmm.Dense(gemm.Rows(ir.View[float32](w), depth), depth), kernel.SparseValues{})
	return &op.Prepared{State: m, Bytes: m.Bytes(), Drops: []int{1}}
}
