package packedweight

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A Quantized is the output of DequantizeLinear on constants: the quantized values as they are stored, or as a matrix
// in the layout of products.
type Quantized struct {
	*Granularity
	x, zero *ir.Array // nil in a matrix; zero also if zero points are zeros
	scale   []float32
	scales  int
	values  []float32 // the number that each quantized value represents

	unscaled  bool // the scale is 1
	quotients bool // elements are values with all that follow in their byte

	matrix   *kernel.Quantized
	sparse   *spmm.Matrix // transposed; instead of matrix
	row, col int          // distances of its elements in the tensor
}

// NewQuantized returns x, of at most 8 bits, minus zero points times scales, which are one for each run of g. zero is
// nil if all zero points are zeros. Without data of x, while memory is only planned, scale is nil; scales is the number
// of scales.
func NewQuantized(g *Granularity, x, zero *ir.Array, scale []float32, scales int) *Quantized {
	w := &Quantized{Granularity: g, x: withoutOwner(x), scale: scale, scales: scales, values: valuesOf(x.DType)}
	if zero != nil {
		w.zero = withoutOwner(zero)
	}
	return w
}

// withoutOwner is a with the same data, so that a constant that is dropped afterwards does not keep them.
func withoutOwner(a *ir.Array) *ir.Array {
	return &ir.Array{DType: a.DType, Shape: a.Shape, Data: a.Data}
}

// valuesOf is the number that each value of a type of at most 8 bits represents.
func valuesOf(dt ir.DType) []float32 {
	if narrow.IsFloat(dt) {
		return floatValues(dt)
	}
	values := make([]float32, 1<<dt.Bits())
	for i := range values {
		values[i] = float32(i)
		if isSigned(dt) && i >= len(values)/2 {
			values[i] -= float32(len(values))
		}
	}
	return values
}

// isByte reports whether elements of type dt are integers of one byte.
func isByte(dt ir.DType) bool { return dt == ir.Int8 || dt == ir.Uint8 }

// isSigned reports whether dt is a signed integer of at most 8 bits.
func isSigned(dt ir.DType) bool { return dt == ir.Int8 || dt == ir.Int4 || dt == ir.Int2 }

// floatValues is valuesOf for float types.
func floatValues(dt ir.DType) []float32 {
	all, values := make([]byte, 1<<dt.Bits()), make([]float32, 1<<dt.Bits())
	for i := range all {
		all[i] = byte(i)
	}
	data := all
	if dt.Bits() < 8 {
		data = make([]byte, dt.Bits()*int64(len(all))/8)
		narrow.EncodeInts(data, all, ir.Uint4)
	}
	narrow.DecodeFloats(values, data, dt)
	return values
}

// Bytes implements op.Packed.
func (w *Quantized) Bytes() int64 {
	if w.sparse != nil {
		return w.sparse.Bytes()
	}
	if m := w.matrix; m != nil {
		size := int64(m.ValueBytes()) + 4*int64(m.BlockValues()) + 4*int64(len(m.Table))
		if w.zero != nil {
			size += int64(m.BlockValues())
		}
		return size
	}
	size := w.x.Bytes() + 4*int64(w.scales) + 4*int64(len(w.values))
	if w.zero != nil {
		size += w.zero.Bytes()
	}
	return size
}

// Decode implements op.Packed.
func (w *Quantized) Decode(dst []float32, p op.Part) {
	for i := range p.Rows {
		// Run by run, as elements of a run share a scale or have contiguous ones.
		for j := 0; j < p.Cols; {
			at, to := p.At+i*p.Stride+j, dst[i*p.DstRow+j*p.DstCol:]
			r := w.runFrom(at)
			r.N = min(r.N, p.Cols-j)
			w.decodeRun(to, r, p.DstCol)
			j += r.N
		}
	}
}

// decodeRun writes a run to elements of dst that are a distance apart.
func (w *Quantized) decodeRun(dst []float32, r Run, distance int) {
	if w.matrix != nil || w.sparse != nil {
		for i := range r.N {
			if k, n := w.place(r.At + i); w.sparse != nil {
				dst[i*distance] = w.sparse.At(n, k)
			} else {
				dst[i*distance] = w.matrix.At(k, n)
			}
		}
		return
	}
	if distance == 1 && r.Step == 0 && isByte(w.x.DType) {
		scale := float32(1)
		if !w.unscaled {
			scale = w.scale[r.Scale]
		}
		kernel.Dequantize(dst[:r.N], w.x.Data[r.At:r.At+r.N], w.x.DType == ir.Int8, scale, int32(w.zeroAt(r.Scale)))
		return
	}
	bits := int(w.x.DType.Bits())
	for i := range r.N {
		at, scale := r.At+i, r.Scale+i*r.Step
		value := narrow.Element(w.x.Data, at, bits)
		if w.quotients {
			value = w.x.Data[at*bits/8] >> (at * bits % 8)
		}
		x := w.values[value] - w.zeroAt(scale)
		if !w.unscaled {
			x *= w.scale[scale]
		}
		dst[i*distance] = x
	}
}

// zeroAt is the zero point of a scale.
func (w *Quantized) zeroAt(scale int) float32 {
	if w.zero == nil {
		return 0
	}
	return w.values[narrow.Element(w.zero.Data, scale, int(w.zero.DType.Bits()))]
}

// place is the row and column of element at in the matrix.
func (w *Quantized) place(at int) (k, n int) {
	if w.row == 1 {
		return at % w.col, at / w.col
	}
	return at / w.row, at % w.row
}

// Arrange implements op.Arranged.
func (w *Quantized) Arrange(k, n, row, col int, pool *op.Pool) {
	// One layout: two products with other distances share the stored order, and decode it.
	if w.matrix != nil || w.sparse != nil || row == col || k*n != w.total || w.sparsify(k, n, row, col, pool) {
		return
	}
	q := &kernel.Quantized{K: k, N: n, Bits: int(w.x.DType.Bits()), Block: w.along(k, n, row, col)}
	// Blocks along the columns of the matrix, and stacks of matrices, are decoded from the stored order.
	if !q.Fits() {
		return
	}
	if w.unscaled {
		w.setUnitScales()
	}
	flip := byte(0)
	switch {
	case narrow.IsFloat(w.x.DType):
		q.Table = w.values
	case isSigned(w.x.DType):
		// Kernels have unsigned values: the zero point moves by the same amount.
		flip = 1 << (q.Bits - 1)
		q.Zero = float32(flip)
	}
	data := w.x.Data
	w.matrix, w.row, w.col, w.x = q, row, col, nil
	// While memory is only planned.
	if data == nil {
		return
	}
	q.Values = ir.AlignedBytes(int64(q.ValueBytes()))
	pool.For(q.Panels(), func(j int) {
		// Those that the tensor has next to each other are read as words.
		if row == 1 {
			q.PackColumns(j, data, col, flip)
		} else {
			q.PackRows(j, data, row, flip)
		}
	})
	scaleOf := func(n, block int) int { return w.runFrom(block*q.Block*row + n*col).Scale }
	q.Scales = make([]float32, q.BlockValues())
	kernel.SetBlocks(q, q.Scales, func(n, block int) float32 { return w.scale[scaleOf(n, block)] })
	if w.zero != nil {
		q.Zeros = make([]byte, q.BlockValues())
		kernel.SetBlocks(q, q.Zeros, func(n, block int) byte {
			return narrow.Element(w.zero.Data, scaleOf(n, block), int(w.zero.DType.Bits())) ^ flip
		})
		w.zero.Data = nil
	}
	w.scale = nil
}

// setUnitScales stores the scales of a weight without ones.
func (w *Quantized) setUnitScales() {
	w.unscaled, w.scales = false, 1
	if w.zero != nil {
		w.scales = int(w.zero.Elems())
	}
	w.scale = slices.Repeat([]float32{1}, w.scales)
}

// Matrix implements op.Arranged.
func (w *Quantized) Matrix(row, col int) *kernel.Quantized {
	if w.row != row || w.col != col {
		return nil
	}
	return w.matrix
}

// sparsify stores w as a sparse matrix if it is multiplied faster so; see Arrange.
func (w *Quantized) sparsify(k, n, row, col int, pool *op.Pool) bool {
	source, v := w.Source(spmm.QuantizedDensity, k, n, row, col)
	if source == nil {
		return false
	}
	w.sparse, w.row, w.col = spmm.Pack(pool, n, k, source, v), row, col
	w.x, w.zero, w.scale = nil, nil, nil
	return true
}

// Source lists the nonzero elements of the transposed matrix, if element (k, n) of a k×n one is k·row + n·col, and
// types its values. It is nil unless these have a scale for each column and are so few that products are faster than
// dense ones by cost model d.
func (w *Quantized) Source(d spmm.Density, k, n, row, col int) (spmm.Source, kernel.SparseValues) {
	if w.x == nil || w.scale == nil || !isByte(w.x.DType) || k*n != w.total || w.along(k, n, row, col) < k {
		return nil, kernel.SparseValues{}
	}
	m := &spmm.QuantizedMatrix{
		Data: w.x.Data, Signed: w.x.DType == ir.Int8, K: k, N: n, Row: row, Col: col, Zeros: make([]int32, n),
	}
	scales := make([]float32, n)
	for j := range n {
		at := w.runFrom(j * col).Scale
		scales[j], m.Zeros[j] = w.scale[at], int32(w.zeroAt(at))
		if s := float64(scales[j]); math.IsInf(s, 0) || math.IsNaN(s) || math.Signbit(s) {
			// zero times it is not zero, or -0, which the dequantized weight does not count as zero
			return nil, kernel.SparseValues{}
		}
	}
	if !m.IsSparse(d) {
		return nil, kernel.SparseValues{}
	}
	return m.Source(scales)
}

// Sparse is the transposed matrix of these distances, nil if it is not sparse or not arranged so.
func (w *Quantized) Sparse(row, col int) *spmm.Matrix {
	if w.row != row || w.col != col {
		return nil
	}
	return w.sparse
}
