package conv

import (
	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// sparseWeights is the result of Prepare for W with enough zeros, by group.
type sparseWeights []*spmm.Matrix

// maybeSparse reports whether constant weights of this shape are multiplied as sparse matrices if they have enough zeros.
func maybeSparse(n *op.Node, w *ir.Array) bool {
	return w.DType == ir.Float && len(w.Shape) > 2 && sparseDensity(w).Eligible(int(w.Elems()/groupsOf(n)))
}

func groupsOf(n *op.Node) int64 { return max(n.Int("group", 1), 1) }

// sparseDensity is that of products if the kernel has one element.
func sparseDensity(w *ir.Array) spmm.Density {
	if op.Product(w.Shape[2:]) == 1 {
		return spmm.FloatDensity
	}
	return spmm.ConvDensity
}

// isSparse reports whether weights are multiplied faster as sparse matrices.
func isSparse(n *op.Node, w *ir.Array) bool {
	return maybeSparse(n, w) && spmm.IsSparse(sparseDensity(w), ir.View[float32](w))
}

// prepareSparse packs constant weights as sparse matrices, or returns nil if the dense ones are multiplied faster.
func prepareSparse(n *op.Node, w *ir.Array, p *op.Pool) *op.Prepared {
	if !isSparse(n, w) {
		return nil
	}
	weights, bytes := packSparse(n, w, p), int64(0)
	for _, m := range weights {
		bytes += m.Bytes()
	}
	return &op.Prepared{State: weights, Bytes: bytes, Drops: []int{1}}
}

func packSparse(n *op.Node, w *ir.Array, p *op.Pool) sparseWeights {
	weights, depth := make(sparseWeights, groupsOf(n)), int(op.Product(w.Shape[1:]))
	rows := int(w.Shape[0]) / len(weights)
	for g := range weights {
		weights[g] = spmm.Pack(p, rows, depth, spmm.Dense(gemm.Rows(part(ir.View[float32](w), g, rows*depth), depth), depth), kernel.SparseValues{})
	}
	return weights
}

// sparseWork is the size of sparseWeights.convolve's scratch memory.
func (g *Geometry) sparseWork(workers int) int64 {
	if w := sparseWindowsOf(g); w != nil {
		return w.work(workers)
	}
	return g.TableSize() + spmm.Work(g.OutC, g.OutArea(), workers)
}

// convolve convolves with sparse weights.
func (weights sparseWeights) convolve(g *Geometry, p *op.Pool, work []byte, j job) {
	if w := sparseWindowsOf(g); w != nil {
		w.run(p, work, j, weights)
		return
	}
	products := g.products(work, j)
	if g.Pointwise() && g.OutArea() > 1 {
		for i := range products {
			products[i].Panels = pixelPanels(j.x.from(i*g.InC*g.InArea()), g.OutArea())
		}
	}
	for group, m := range weights {
		var own []gemm.FloatProduct
		for i := group; i < len(products); i += len(weights) {
			own = append(own, products[i])
		}
		spmm.Left(p, m, g.Product(), work[g.TableSize():], own...)
	}
}
