package weightonly

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// chooseBlocks picks the form of a blockwise weight: DequantizeLinear for one product, quantized lookups, both if their layouts
// agree, else a form that runtimes fold. Both require transposed values, and columns of zero points as vectors: ONNX Runtime has
// no Transpose of 2-bit and no Reshape of 4-bit types.
func (w *Quantizer) chooseBlocks(v *ir.Value, us []*weights.Use) *plan {
	if p := w.chooseBits(v, us); p != nil {
		return p
	}
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.Dequantize}
	var product, table *weights.Consumer
	for _, u := range us {
		if u.Consumer == nil || !u.Consumer.StaysQuantized(v, ir.Float, ir.Float16) || u.Consumer.Side != weights.Lookup && product != nil || w.denseReason != "" || w.misread(u.Consumer) {
			return w.foldBlocks(v)
		}
		if u.Consumer.Side == weights.Lookup {
			table = u.Consumer
		} else {
			product = u.Consumer
		}
		p.Consumers = append(p.Consumers, u.Consumer)
	}
	var b *spec.BlockLayout
	switch size := int64(w.Blocks.size()); {
	case !weights.SameScope(v, p.Consumers) || table != nil && len(table.Shape) != 2:
		return w.foldBlocks(v)
	case product == nil:
		if p.form = pass.GatherBlocks; w.Blocks.Bits == 8 {
			p.form = pass.GatherQuantized
		}
		b = w.columnMajor(table.Shape[0], table.Shape[1])
	case table == nil:
		b = w.Blocks.layout(product.Shape[0], product.Shape[1], size, false)
		b.ColumnMajor, b.Transposed = product.Transposed, product.Transposed
	case !product.Transposed || size > 0 && product.Shape[0]%min(size, product.Shape[0]) != 0 || w.Blocks.Bits == 2:
		return w.foldBlocks(v)
	default:
		b = w.Blocks.layout(product.Shape[0], product.Shape[1], size, false)
		b.ColumnMajor = true
		if b.NumBlocks() == 1 && b.HasZeroPoints() && b.Bits < 8 {
			return w.foldBlocks(v)
		}
		p.note(pass.Reason{Code: pass.StoredTwice})
	}
	p.encode(w, v, p.Consumers[0].BaseShape(), b)
	return p
}

// encode sets the encoding of v with layout b.
func (p *plan) encode(w *Quantizer, v *ir.Value, shape []int64, b *spec.BlockLayout) {
	b.Spec.Half = v.Const.DType == ir.Float16
	p.encoding = &spec.Blockwise{Buffers: w.buffers, Weight: v.Const, Shape: shape, Layout: b}
	if b.BytePacked() && !b.ForNBits && b.Rows*b.Cols*int64(b.Bits)%8 != 0 {
		p.unsupported = pass.Reason{Code: pass.Shape, Detail: fmt.Sprintf("%d values of %d bits in whole bytes", b.Rows*b.Cols, b.Bits)}
	}
}

// columnMajor divides n contiguous columns into blocks of equal size.
func (w *Quantizer) columnMajor(n, rows int64) *spec.BlockLayout {
	b := w.Blocks.layout(rows, n, Divisor(rows, int64(w.Blocks.size())), w.denseReason != "")
	b.ColumnMajor = true
	return b
}

// Divisor is the largest divisor of n up to size, or n if that is less than a quarter of size, or size is 0.
func Divisor(n, size int64) int64 {
	for d := min(size, n); d > size/4; d-- {
		if n%d == 0 {
			return d
		}
	}
	return n
}

// foldBlocks divides v into blocks along its last axes, as few of them as hold a block.
func (w *Quantizer) foldBlocks(v *ir.Value) *plan {
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.CastMul}
	shape := v.Const.Shape
	rows, axis := int64(1), len(shape)
	for axis > 0 && (rows < int64(w.Blocks.size()) || w.Blocks.size() == 0 && axis > 1) {
		axis--
		rows *= shape[axis]
	}
	p.encode(w, v, shape, w.columnMajor(v.Const.Elems()/max(1, rows), rows))
	if w.denseReason != "" {
		p.note(pass.Reason{Code: pass.DenseAtRunTime, Detail: w.denseReason})
	}
	return p
}
