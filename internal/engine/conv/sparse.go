package conv

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// sparseWeights is the result of Prepare for W with enough zeros, by group.
type sparseWeights []*spmm.Matrix

// maybeSparse reports whether constant weights of this type and shape are multiplied as sparse matrices if they have
// enough zeros.
func maybeSparse(n *op.Node, w *ir.Array) bool {
	return (w.DType == ir.Float || w.DType == ir.Float16) && len(w.Shape) > 2 &&
		sparseDensity(w).Eligible(int(w.Elems()/groupsOf(n)))
}

func groupsOf(n *op.Node) int64 { return max(n.Int("group", 1), 1) }

// sparseDensity is that of products if the kernel has one element. Speed-up over dense weights by density
// (BenchmarkSparseConv, one core of an AMD EPYC with AVX2, load of 10 to 15; the dense 3×3 ones by the former AVX2 form
// of Winograd's algorithm, whose present form takes 0.5 to 0.7 of the time):
//
//	W            X             0.05  0.1  0.2  0.3
//	64×64×3×3    1×64×56×56    4.7   2.7  1.3  1.1
//	256×256×3×3  1×256×14×14   6.1   3.5  1.9  1.3
//	512×512×3×3  1×512×7×7     9.1   5.7  3.2  2.2
//	64×3×7×7     1×3×224×224   4.1   3.2  2.1  1.5
//	256×64×1×1   1×64×56×56    2.6   2.0  1.5  1.1
//	96×384×1×1   1×384×14×14   4.3   3.0  2.0  1.3
//	960×160×1×1  1×160×7×7     4.7   3.2  1.9  1.4
//	960×160×1×1  1×160×3×3     2.4   1.7  0.9  0.8
//
// Weights of a kernel of several elements are sparse from 2048 elements on: 864 (32×3×3×3) were as fast as dense ones,
// and 1×1 weights of less than 2^14 took up to 1.4 times as long.
func sparseDensity(w *ir.Array) spmm.Density {
	if op.Product(w.Shape[2:]) == 1 {
		return spmm.FloatDensity
	}
	return spmm.ConvDensity
}

// decodes reports whether input i may be a packed constant: weights with enough zeros.
func decodes(n *op.Node, i int, w *ir.Array) bool { return i == 1 && (w == nil || isSparse(n, w)) }

// isSparse reports whether weights are multiplied faster as sparse matrices.
func isSparse(n *op.Node, w *ir.Array) bool {
	source, _ := sourceOf(n, w)
	return source != nil
}

// A quantizedWeight is a Packed of 8-bit values.
type quantizedWeight interface {
	// Source lists the nonzero elements of the transposed matrix whose element (k, n) of k×n is k·row + n·col. It is
	// nil if the dense one is multiplied faster.
	Source(d spmm.Density, k, n, row, col int) (spmm.Source, kernel.SparseValues)
}

// sourceOf lists the nonzero elements of weights, which are n.Packed or dense: a row for each output channel. It is nil
// if the dense ones are multiplied faster.
func sourceOf(n *op.Node, w *ir.Array) (spmm.Source, kernel.SparseValues) {
	if !maybeSparse(n, w) {
		return nil, kernel.SparseValues{}
	}
	d, rows, depth := sparseDensity(w), int(w.Shape[0]), int(op.Product(w.Shape[1:]))
	switch packed := n.Packed.(type) {
	case quantizedWeight:
		return packed.Source(d, depth, rows, 1, depth)
	case *packedweight.Sparse:
		if d.Worthwhile(rows*depth, packed.NonZeros()) {
			return spmm.At(packed.Positions, packed.Values, depth, 1, depth), kernel.SparseValues{}
		}
	case nil:
		switch {
		case w.DType == ir.Float && spmm.IsSparse(d, ir.View[float32](w)):
			return spmm.Dense(gemm.Rows(ir.View[float32](w), depth), depth), kernel.SparseValues{}
		case w.DType == ir.Float16 && spmm.IsSparse(d, ir.View[uint16](w)):
			v := kernel.SparseValues{Type: kernel.SparseHalf, Scales: slices.Repeat([]float32{1}, rows)}
			return spmm.Halves(gemm.Rows(ir.View[uint16](w), depth), depth), v
		}
	}
	return nil, kernel.SparseValues{}
}

// prepareSparse packs constant weights as sparse matrices, or returns nil if the dense ones are multiplied faster.
func prepareSparse(n *op.Node, w *ir.Array, p *op.Pool) *op.Prepared {
	source, values := sourceOf(n, w)
	if source == nil {
		return nil
	}
	weights, bytes := packSparse(n, w, source, values, p), int64(0)
	for _, m := range weights {
		bytes += m.Bytes()
	}
	return &op.Prepared{State: weights, Bytes: bytes, Drops: []int{1}}
}

// packSparse packs the elements of a source of all rows by group.
func packSparse(n *op.Node, w *ir.Array, source spmm.Source, values kernel.SparseValues, p *op.Pool) sparseWeights {
	weights, depth := make(sparseWeights, groupsOf(n)), int(op.Product(w.Shape[1:]))
	rows := int(w.Shape[0]) / len(weights)
	for g := range weights {
		// Scales belong to output channels, which are divided by group like the rows.
		own := values
		if own.Scales != nil {
			own.Scales = part(values.Scales, g, rows)
		}
		rowsOfGroup := func(from, to int) *spmm.Rows { return source(g*rows+from, g*rows+to) }
		weights[g] = spmm.Pack(p, rows, depth, rowsOfGroup, own)
	}
	return weights
}

// sparseWork is the size of sparseWeights.convolve's scratch memory.
func (g *Geometry) sparseWork(workers int) int64 {
	size := g.TableSize() + spmm.Work(g.OutC, g.Batch*g.OutArea(), workers)
	if w := sparseWindowsOf(g); w != nil {
		size = max(size, w.work(workers))
	}
	return size
}

// convolve convolves with sparse weights.
func (weights sparseWeights) convolve(g *Geometry, p *op.Pool, work []byte, j job) {
	// Pixels with channels last are rows of a product already; windows need a copy of the input, which they transpose;
	// the rest are products with patches.
	switch w := sparseWindowsOf(g); {
	case g.Pointwise() && (j.lastX || j.lastY):
		weights.pixels(g, p, work, j)
		return
	case w != nil:
		w.run(p, work, j, weights)
		return
	}
	products := g.products(work, j)
	// As the dense form does (PackLanes): PackPanels has a copy per channel for rows of less than 16 elements, with
	// which 960 channels of 3×3 took 1.3 times as long, of 2×2 1.5 times.
	if g.Pointwise() && g.OutArea() > 1 {
		for i := range products {
			products[i].Panels = pixelPanels(j.x.from(i*g.InC*g.InArea()), g.OutArea())
		}
	}
	// Images of a group share its weights: one call has all of them, so that workers divide all columns.
	for group, m := range weights {
		var own []gemm.FloatProduct
		for i := group; i < len(products); i += len(weights) {
			own = append(own, products[i])
		}
		spmm.Left(p, m, g.Product(), work[g.TableSize():], own...)
	}
}

// pixels is convolve for 1×1 kernels, one group, and an image with channels last: products of pixels, of all images at
// once if both have.
func (weights sparseWeights) pixels(g *Geometry, p *op.Pool, work []byte, j job) {
	// Images with channels last follow each other as rows of one matrix, with channels first each is a matrix of its
	// own.
	shape, products := g.Product(), make([]gemm.FloatProduct, g.Batch)
	if j.lastX && j.lastY {
		shape.N, products = g.Batch*shape.N, products[:1]
	}
	for i := range products {
		x, y := j.x.from(i*g.InC*shape.N), j.y.Values[i*g.OutC*shape.N:]
		q := gemm.FloatProduct{C: y, Stride: shape.N, Accumulate: j.add, Epilogue: gemm.Epilogue{Activate: j.activate}}
		pixels, bias := gemm.Matrix[float32]{Data: x.Values, Row: 1, Col: shape.N},
			gemm.Matrix[float32]{Data: j.bias, Row: 1}
		if j.lastX {
			pixels.Row, pixels.Col = g.InC, 1
		} else {
			q.Panels = pixelPanels(x, shape.N)
		}
		if j.lastY {
			q.A, q.Stride, bias.Row, bias.Col = pixels, g.OutC, 0, 1
		} else {
			q.B = pixels.T()
		}
		if j.bias != nil {
			q.Epilogue.Bias = bias
		}
		products[i] = q
	}
	if j.lastY {
		// Pixels are the rows of the output: the weight is the right operand.
		shape.M, shape.N = shape.N, shape.M
		spmm.Right(p, weights[0], shape, work, products...)
	} else {
		spmm.Left(p, weights[0], shape, work, products...)
	}
}
