package quantize

import (
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// scaleShape is a matrix that lies as the codes do, or a vector for one block a column of those that stand.
func (b *blocking) scaleShape() []int64 {
	switch n := b.blocks(); {
	case !b.standing():
		return []int64{b.cols, n}
	case n == 1:
		return []int64{b.cols}
	default:
		return []int64{n, b.cols}
	}
}

// scaleType is the type of scales, and of zero points that are real numbers.
func (b *blocking) scaleType() ir.DType {
	if b.grid.Half {
		return ir.Float16
	}
	return ir.Float
}

// zeros is the type and shape of zero points.
func (b *blocking) zeros() (ir.DType, []int64) {
	switch {
	case b.real:
		return b.scaleType(), b.scaleShape()
	case b.padded:
		return ir.Uint8, []int64{b.cols, ceil(b.blocks()*int64(b.bits), 8)}
	}
	return b.dtype, b.scaleShape()
}

// place puts scales and zero points of a part, from a block and a column on, where they are stored.
func (r *blockRun) place(c *solve.Codes, block, col int64) error {
	across, down := int64(1), r.b.cols // from column to column, from block to block
	if !r.b.standing() {
		across, down = r.b.blocks(), 1
	}
	for i := 0; i < len(c.Scale); i += c.N {
		at := col*across + (block+int64(i/c.N))*down
		for j, s := range c.Scale[i:][:c.N] {
			if why := r.b.unfit(max(s, -s), c.Zero[i+j]); why != "" {
				return &pass.Unfit{Tensor: r.t.Name, Reason: why}
			}
			r.scale[at] = s
			if r.point != nil {
				r.point[at] = c.Point[i+j]
			} else {
				r.zero[at] = byte(c.Zero[i+j])
			}
			at += across
		}
	}
	return nil
}

// unfit says why codes cannot stand for weights with a scale of this magnitude and a zero point, or nothing. Float16 weights are made of
// them in float16 at run time, where the largest must not become infinities.
func (b *blocking) unfit(scale float32, zero int32) string {
	switch most := scale * float32(max(b.grid.High-zero, zero-b.grid.Low)); {
	case !normal(scale):
		return "its values are too small or too large for a scale of normal float32 size"
	case b.grid.Half && most > binary16.largest:
		return fmt.Sprintf("its codes would reach up to %g, which float16 does not hold", most)
	}
	return ""
}

// nonFinite says why a largest magnitude, as bits, cannot be stood for.
func nonFinite(bits uint32) string {
	switch {
	case bits > infBits:
		return "it holds NaN"
	case bits == infBits:
		return "it holds infinities"
	}
	return ""
}

// write writes scales, or real zero points, in their type.
func (r *blockRun) write(out io.Writer, x []float32) error {
	w := &floatWriter{w: out, dt: r.b.scaleType()}
	return w.flush(r.ctx, &x)
}

// zeros are whole zero points as they are stored.
func (r *blockRun) zeros() []byte {
	b := r.b
	if b.padded {
		return b.packColumns(r.zero, b.blocks(), 8/int64(b.bits))
	}
	return b.pack(r.zero, r.zero, int(b.dtype.Bits()))
}
