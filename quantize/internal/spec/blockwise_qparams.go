package spec

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// scaleShape is a matrix in the order of the quantized weight, or a vector for row-major weights with one block per
// column.
func (b *BlockLayout) scaleShape() []int64 {
	switch n := b.NumBlocks(); {
	case !b.RowMajor():
		return []int64{b.Cols, n}
	case n == 1:
		return []int64{b.Cols}
	default:
		return []int64{n, b.Cols}
	}
}

// scaleDType is the type of scales, and of float zero points.
func (b *BlockLayout) scaleDType() ir.DType {
	if b.Spec.Half {
		return ir.Float16
	}
	return ir.Float
}

// zeroPointSpec is the type and shape of zero points.
func (b *BlockLayout) zeroPointSpec() (ir.DType, []int64) {
	switch {
	case b.FloatZeroPoints:
		return b.scaleDType(), b.scaleShape()
	case b.ForNBits:
		return ir.Uint8, []int64{b.Cols, ceilDiv(b.NumBlocks()*int64(b.Bits), 8)}
	case b.ZeroPointsPacked():
		return ir.Uint8, []int64{ceilDiv(b.NumBlocks()*b.Cols*int64(b.Bits), 8)}
	}
	return b.DType, b.scaleShape()
}

// writeQParams writes the scales and zero points of a chunk. Chunks are in the order of the stored tensors: all columns
// of some blocks of rows, or all rows of some columns.
func (r *blockQuantizer) writeQParams(c *solve.Quantized) error {
	b, n := r.Layout, int64(len(c.Scale))
	r.scale = resized(r.scale, n)
	if b.FloatZeroPoints {
		r.floatZeroPoint = resized(r.floatZeroPoint, n)
	} else {
		r.zeroPoint = resized(r.zeroPoint, n)
	}
	// In the orientation of the stored values.
	across, down := int64(1), int64(c.N) // from column to column, from block to block
	if !b.RowMajor() {
		across, down = b.NumBlocks(), 1
	}
	for i := 0; i < len(c.Scale); i += c.N {
		at := int64(i/c.N) * down
		for j, s := range c.Scale[i:][:c.N] {
			// A negative scale reaches as far as its magnitude.
			if reason := b.unrepresentable(max(s, -s), c.Zero[i+j]); !reason.None() {
				return &pass.Unfit{Tensor: r.Weight.Name, Reason: reason}
			}
			r.scale[at] = s
			if b.FloatZeroPoints {
				r.floatZeroPoint[at] = c.Point[i+j]
			} else {
				r.zeroPoint[at] = byte(c.Zero[i+j])
			}
			at += across
		}
	}
	if err := r.writeFloats(OutScales, r.scale); err != nil {
		return err
	}
	switch {
	case !b.HasZeroPoints():
		return nil
	case b.FloatZeroPoints:
		return r.writeFloats(OutZeroPoints, r.floatZeroPoint)
	case b.ForNBits:
		return r.zeroPoints.Write(padColumns(r.zeroPoint, b.NumBlocks(), 8/int64(b.Bits)))
	}
	return r.zeroPoints.Write(r.zeroPoint)
}

// unrepresentable is the reason why quantized values cannot represent weights with a scale of this magnitude and a zero
// point. The largest dequantized value must not overflow: that of float16 weights is float16 at run time.
func (b *BlockLayout) unrepresentable(scale float32, zero int32) pass.Reason {
	switch most := scale * float32(max(b.Spec.High-zero, zero-b.Spec.Low)); {
	case IsNormal(scale) && most > math.MaxFloat32:
		return pass.Reason{Code: pass.NotRepresented,
			Detail: fmt.Sprintf("dequantized values above the range of float32, scale %g", scale)}
	case !IsNormal(scale):
		return pass.Reason{Code: pass.NoScale, Detail: fmt.Sprintf("scale %g", scale)}
	case b.Spec.Half && most > LargestFloat16:
		return pass.Reason{Code: pass.NotRepresented,
			Detail: fmt.Sprintf("dequantized values up to %g, range of float16 ±%d", most, LargestFloat16)}
	}
	return pass.Reason{}
}

// writeFloats writes scales, or float zero points, in their type.
func (r *blockQuantizer) writeFloats(out int, x []float32) error {
	w := &FloatWriter{W: r.out[out], Dt: r.Layout.scaleDType()}
	return w.Flush(r.ctx, &x)
}

// zeroPointBits is the size of stored integer zero points.
func (b *BlockLayout) zeroPointBits() int {
	if b.ZeroPointsPacked() || b.ForNBits {
		return b.Bits
	}
	return int(b.DType.Bits())
}

// LargestFloat16 is the largest finite float16.
const LargestFloat16 = 65504
