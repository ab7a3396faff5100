package recurrent

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A factor is the matrix W, or a part of R, of one direction, transposed and prepacked.
type factor interface {
	// multiply computes c = a·factor + bias for rows of a, or adds a·factor to c. bias is nil for none.
	multiply(p product)
	Bytes() int64
}

// A product is one with a factor: of the rows of a into the rows of c, which are stride numbers from each other.
type product struct {
	pool       *op.Pool
	work       []byte
	a, c, bias []float32
	rows       int
	stride     int
	accumulate bool
}

// A floatFactor has k rows and n columns.
type floatFactor struct {
	*gemm.PackedFloat
	k, n int
}

func (f floatFactor) multiply(p product) {
	g := gemm.FloatProduct{A: gemm.Rows(p.a, f.k), Packed: f.PackedFloat, C: p.c, Stride: p.stride,
		Accumulate: p.accumulate}
	if p.bias != nil {
		g.Epilogue.Bias = gemm.Matrix[float32]{Data: p.bias, Col: 1}
	}
	gemm.Float(p.pool, gemm.Shape{M: p.rows, N: f.n, K: f.k}, p.work, g)
}

// A quantizedFactor has k rows and n columns of 8 bits, with a scale and a zero point for each column. The other
// operand is quantized by the range of all of its elements, as by DynamicQuantizeLinear.
type quantizedFactor struct {
	*gemm.PackedInt
	k, n  int
	scale []float32
	zero  []int32
}

func (f *quantizedFactor) multiply(p product) {
	a := p.a[:p.rows*f.k]
	quantized, work := p.work[:len(a)], p.work[bytesOf(len(a)):]
	// The range is that of all rows together, as DynamicQuantizeLinear of the operand computes it: so a step's
	// rounding depends on the batch.
	scale, zero := kernel.DynamicScale(0, 0)
	if len(a) > 0 {
		scale, zero = kernel.DynamicScale(kernel.MinMax(a))
	}
	kernel.Quantize(quantized, a, scale, int32(zero), kernel.IntRange{Lo: 0, Hi: 255})
	scales := make([]float32, f.n)
	for i, s := range f.scale {
		scales[i] = scale * s
	}
	gemm.Int(p.pool, gemm.Shape{M: p.rows, N: f.n, K: f.k}, work, gemm.IntProduct{
		A: gemm.Rows(quantized, f.k), AZero: []int32{int32(zero)}, Packed: f.PackedInt, BZero: f.zero,
		Finish: gemm.EachRow(func(row, col int, sums []int32) {
			to := p.c[row*p.stride+col:][:len(sums)]
			var add []float32
			switch {
			case p.accumulate:
				add = to
			case p.bias != nil:
				add = p.bias[col:][:len(sums)]
			}
			kernel.DequantizeInt32Cols(to, sums, scales[col:][:len(sums)], add)
		}),
	})
}

// bytesOf rounds a number of bytes up to the alignment of scratch memory.
func bytesOf(n int) int { return (n + 63) / 64 * 64 }

// quantizedWork is the scratch memory of a product with a quantizedFactor.
func quantizedWork(s gemm.Shape, workers int) int64 {
	return int64(bytesOf(s.M*s.K)) + gemm.IntWork(s, 1, workers, true, true)
}

// Inputs of com.microsoft.DynamicQuantizeLSTM after those of LSTM.
const (
	inWScale = iota + inP + 1
	inWZero
	inRScale
	inRZero
)

// checkQuantized checks scales and zero points of W and R: one for a direction, or one for each of its columns.
func (l *layer) checkQuantized(in []*ir.Array) error {
	for _, o := range []struct {
		name        string
		data        int
		scale, zero int
	}{{"W", inW, inWScale, inWZero}, {"R", inR, inRScale, inRZero}} {
		scale, err := op.Arg(in, o.scale, o.name+"_scale")
		if err != nil {
			return err
		}
		n := int64(l.D * l.gates * l.H)
		if scale.DType != ir.Float || scale.Elems() != int64(l.D) && scale.Elems() != n {
			return fmt.Errorf("input %s_scale is %s, want %d or %d floats", o.name, scale, l.D, n)
		}
		zero, err := op.Arg(in, o.zero, o.name+"_zero_point")
		if err != nil {
			return err
		}
		if zero.DType != in[o.data].DType || zero.Elems() != int64(l.D) && zero.Elems() != n {
			return fmt.Errorf("input %s_zero_point is %s, want %d or %d of the type of %s", o.name, zero, l.D, n,
				in[o.data])
		}
	}
	return nil
}

// packable reports whether the constants among the inputs are W and R with their scales and zero points.
func (k *kind) packable(in []*ir.Array) bool {
	w, r := op.Opt(in, inW), op.Opt(in, inR)
	for _, a := range []*ir.Array{w, r} {
		if a == nil || len(a.Shape) != 3 || a.DType != ir.Int8 && a.DType != ir.Uint8 {
			return false
		}
	}
	l := &layer{kind: k, D: int(w.Shape[0]), H: int(r.Shape[1])}
	columns := int64(k.gates * l.H)
	return r.Shape[0] == w.Shape[0] && w.Shape[2] == columns && r.Shape[2] == columns && l.checkQuantized(in) == nil
}

// packQuantized packs W and R, which are transposed already.
func packQuantized(in []*ir.Array, pool *op.Pool) *weights {
	out := &weights{}
	for d := range int(in[inW].Shape[0]) {
		out.w = append(out.w, quantizedPart(in[inW], in[inWScale], in[inWZero], d, pool))
		out.before = append(out.before, quantizedPart(in[inR], in[inRScale], in[inRZero], d, pool))
	}
	return out
}

// quantizedPart is the factor of one direction.
func quantizedPart(data, scale, zero *ir.Array, d int, pool *op.Pool) *quantizedFactor {
	k, n := int(data.Shape[1]), int(data.Shape[2])
	f := &quantizedFactor{
		PackedInt: gemm.PackInt(pool, gemm.Rows(data.Data[d*k*n:][:k*n], n), k, n, data.DType == ir.Int8),
		k:         k, n: n, scale: make([]float32, n), zero: make([]int32, n),
	}
	directions := int(data.Shape[0])
	for i := range n {
		at := func(a *ir.Array) int {
			if int(a.Elems()) == directions {
				return d
			}
			return d*n + i
		}
		f.scale[i] = ir.View[float32](scale)[at(scale)]
		f.zero[i] = int32(zero.Data[at(zero)])
		if data.DType == ir.Int8 {
			f.zero[i] = int32(int8(zero.Data[at(zero)]))
		}
	}
	return f
}
