package quant

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A weight is the output of DequantizeLinear on constants, in packed form: the quantized values as they are stored, or as a matrix in the
// layout of products.
type weight struct {
	*granularity
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

// packDequantize packs values of at most 8 bits, without data while memory is only planned.
func packDequantize(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed {
	for _, p := range packed {
		if p != nil {
			return nil
		}
	}
	specs, err := dequantizeShape(n, in)
	bits := in[0].DType.Bits()
	if err != nil || specs[0].DType != ir.Float || bits > 8 || bits == 6 {
		return nil
	}
	w := &weight{x: in[0], scales: int(in[1].Elems()), values: valuesOf(in[0].DType)}
	if w.granularity, err = granularityOf(n, in[0], in[1]); err != nil {
		return nil
	}
	if zero := op.Opt(in, 2); !narrow.IsFloat(in[0].DType) {
		w.zero = zero
	}
	if !op.Known(w.x) {
		return w
	}
	if w.scale, err = floats(in[1]); err != nil || w.zero != nil && !op.Known(w.zero) {
		return nil
	}
	w.x = &ir.Array{DType: w.x.DType, Shape: w.x.Shape, Data: w.x.Data} // the constant is released
	if w.zero != nil {
		w.zero = &ir.Array{DType: w.zero.DType, Shape: w.zero.Shape, Data: w.zero.Data}
	}
	return w
}

// valuesOf is the number that each value of a type of at most 8 bits represents.
func valuesOf(dt ir.DType) []float32 {
	if narrow.IsFloat(dt) {
		return floatValues(dt)
	}
	values := make([]float32, 1<<dt.Bits())
	for i := range values {
		values[i] = float32(i)
		if lo := ranges[dt].lo; lo < 0 && int32(i) >= -lo {
			values[i] -= float32(len(values))
		}
	}
	return values
}

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
func (w *weight) Bytes() int64 {
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
func (w *weight) Decode(dst []float32, p op.Part) {
	for i := range p.Rows {
		for j := 0; j < p.Cols; {
			at, to := p.At+i*p.Stride+j, dst[i*p.DstRow+j*p.DstCol:]
			r := w.runFrom(at)
			r.n = min(r.n, p.Cols-j)
			w.decodeRun(to, r, p.DstCol)
			j += r.n
		}
	}
}

// decodeRun writes a run to elements of dst that are a distance apart.
func (w *weight) decodeRun(dst []float32, r run, distance int) {
	if w.matrix != nil || w.sparse != nil {
		for i := range r.n {
			if k, n := w.place(r.at + i); w.sparse != nil {
				dst[i*distance] = w.sparse.At(n, k)
			} else {
				dst[i*distance] = w.matrix.At(k, n)
			}
		}
		return
	}
	if distance == 1 && r.step == 0 && isByte(w.x.DType) {
		scale := float32(1)
		if !w.unscaled {
			scale = w.scale[r.scale]
		}
		kernel.Dequantize(dst[:r.n], w.x.Data[r.at:r.at+r.n], w.x.DType == ir.Int8, scale, int32(w.zeroAt(r.scale)))
		return
	}
	bits := int(w.x.DType.Bits())
	for i := range r.n {
		at, scale := r.at+i, r.scale+i*r.step
		value := elementAt(w.x.Data, at, bits)
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
func (w *weight) zeroAt(scale int) float32 {
	if w.zero == nil {
		return 0
	}
	return w.values[elementAt(w.zero.Data, scale, int(w.zero.DType.Bits()))]
}

// place is the row and column of element at in the matrix.
func (w *weight) place(at int) (k, n int) {
	if w.row == 1 {
		return at % w.col, at / w.col
	}
	return at / w.row, at % w.row
}

// Arrange implements op.Arranged.
func (w *weight) Arrange(k, n, row, col int, pool *op.Pool) {
	if w.matrix != nil || w.sparse != nil || row == col || k*n != w.total || w.sparsify(k, n, row, col, pool) {
		return
	}
	q := &kernel.Quantized{K: k, N: n, Bits: int(w.x.DType.Bits()), Block: w.along(k, n, row, col)}
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
	case ranges[w.x.DType].lo < 0:
		flip = 1 << (q.Bits - 1)
		q.Zero = float32(flip)
	}
	data := w.x.Data
	w.matrix, w.row, w.col, w.x = q, row, col, nil
	if data == nil {
		return
	}
	q.Values = ir.AlignedBytes(int64(q.ValueBytes()))
	pool.For(q.Panels(), func(j int) {
		if row == 1 {
			q.PackColumns(j, data, col, flip)
		} else {
			q.PackRows(j, data, row, flip)
		}
	})
	scaleOf := func(n, block int) int { return w.runFrom(block*q.Block*row + n*col).scale }
	q.Scales = make([]float32, q.BlockValues())
	kernel.SetBlocks(q, q.Scales, func(n, block int) float32 { return w.scale[scaleOf(n, block)] })
	if w.zero != nil {
		q.Zeros = make([]byte, q.BlockValues())
		kernel.SetBlocks(q, q.Zeros, func(n, block int) byte {
			return elementAt(w.zero.Data, scaleOf(n, block), int(w.zero.DType.Bits())) ^ flip
		})
		w.zero.Data = nil
	}
	w.scale = nil
}

// setUnitScales stores the scales of a weight without ones.
func (w *weight) setUnitScales() {
	w.unscaled, w.scales = false, 1
	if w.zero != nil {
		w.scales = int(w.zero.Elems())
	}
	w.scale = slices.Repeat([]float32{1}, w.scales)
}

// Matrix implements op.Arranged.
func (w *weight) Matrix(row, col int) *kernel.Quantized {
	if w.row != row || w.col != col {
		return nil
	}
	return w.matrix
}
