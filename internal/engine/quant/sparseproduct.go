package quant

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// maxExact is the magnitude up to which float32 represents all integers.
const maxExact = 1 << 24

// maybeSparse reports whether B is multiplied as a sparse matrix if it is constant and has enough zero points.
func (p *product) maybeSparse(n *op.Node) bool {
	return n.IsConst(p.b) && len(p.bBatch) == 0 && spmm.IntDensity.Eligible(p.K*p.N)
}

// prepareSparse packs a constant B as a sparse matrix, or returns nil if the dense one is multiplied faster. Its
// products are computed as floats: their sums are exact.
func (w operandInputs) prepareSparse(n *op.Node, in []*ir.Array, pool *op.Pool) *op.Prepared {
	b := in[w.b]
	if len(b.Shape) != 2 {
		return nil
	}
	k, width := tail(b.Shape, n.Bool("transB", false))
	m := &spmm.QuantizedMatrix{
		Data: b.Data, Signed: b.DType == ir.Int8, K: int(k), N: int(width), Row: int(width), Col: 1,
		Zeros: make([]int32, width),
	}
	if n.Bool("transB", false) {
		m.Row, m.Col = 1, int(k)
	}
	zeros, err := zeros(optional(in, w.bZero))
	if err != nil || len(zeros) > 1 && len(zeros) != m.N {
		return nil // reported when the node runs
	}
	for j := range m.Zeros {
		if len(zeros) > 0 {
			m.Zeros[j] = zeros[j%len(zeros)]
		}
	}
	s := packExact(m, pool)
	if s == nil {
		return nil
	}
	return &op.Prepared{State: s, Bytes: s.Bytes(), Drops: []int{w.b}}
}

// packExact is the transposed matrix of m for products with 8-bit integers, which are computed as floats. It is nil if
// dense products are faster or sums might not be exact.
func packExact(m *spmm.QuantizedMatrix, pool *op.Pool) *spmm.Matrix {
	if !m.IsSparse(spmm.IntDensity) {
		return nil
	}
	s := m.Pack(pool, slices.Repeat([]float32{1}, m.N))
	const largest = 255 // difference of two elements of A
	// Zero points are in the range of their type, so that the limits of activations minus their zero points are 255
	// apart. Float sums below 2^24 are exact.
	if s.Magnitude()*largest > maxExact {
		return nil
	}
	return s
}

// runSparse is run of a sparse B. bZero are the zero points that were not subtracted from it, as they are no constants.
func (p *product) runSparse(c *op.Call, w *spmm.Matrix, a []byte, signed bool, aZero, bZero []int32, work []byte,
	to []int32, finish finisher) {
	if finish == nil {
		finish = func(_, row, col int, sums []int32) { copy(to[row*p.N+col:], sums) }
	}
	left := sparseLeft{matrix(a, p.M, p.K, p.transA), signed, aZero}
	spmm.Right(c.Pool, w, p.Shape, work, gemm.FloatProduct{
		Panels: left.panels,
		Store: func(row []float32, i, j int) {
			sums := kernel.Words[int32](kernel.Bytes(row))
			kernel.Int32FromFloat(sums, row)
			if len(bZero) > 0 {
				// Σ a·(b - zero) = Σ a·b - zero·Σ a, with a minus its zero point: once for a row of sums.
				total := left.sum(i, p.K)
				for k := range sums {
					sums[k] -= bZero[(j+k)%len(bZero)] * total
				}
			}
			finish(0, i, j, sums)
		},
	})
}

// A sparseLeft is the left operand of a product with a sparse matrix: integers minus the zero points of their rows, as
// floats.
type sparseLeft struct {
	gemm.Matrix[byte]
	signed bool
	zeros  []int32 // none, one, or one for each row
}

// row writes elements of row i from column k on to dst.
func (l sparseLeft) row(dst []float32, i, k int) {
	zero := int32(0)
	if len(l.zeros) > 0 {
		zero = l.zeros[i%len(l.zeros)]
	}
	from := l.Data[i*l.Row+k*l.Col:]
	if l.Col == 1 {
		kernel.Dequantize(dst, from[:len(dst)], l.signed, 1, zero)
		return
	}
	for k := range dst {
		kernel.Dequantize(dst[k:k+1], from[k*l.Col:][:1], l.signed, 1, zero)
	}
}

// panels implements gemm.Panels for the transposed matrix.
func (l sparseLeft) panels(dst []float32, k0, k1, m0, m1 int) {
	depth := k1 - k0
	// A single token: no transposition of a panel of 16 rows for one.
	if m1-m0 == 1 {
		var row [gemm.Depth]float32
		l.row(row[:depth], m0, k0)
		for k, v := range row[:depth] {
			dst[k*kernel.GemmPanel] = v
		}
		return
	}
	var rows [kernel.GemmPanel * gemm.Depth]float32
	for i := m0; i < m1; i++ {
		l.row(rows[(i-m0)*depth:][:depth], i, k0)
	}
	kernel.PackPanels(dst, len(dst), rows[:], 1, depth, depth, kernel.GemmPanel)
}

// sum is that of k elements of row i.
func (l sparseLeft) sum(i, k int) (total int32) {
	row := make([]float32, k)
	l.row(row, i, 0)
	for _, v := range row {
		total += int32(v)
	}
	return total
}
