package weightonly

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// nbitsLayout divides a matrix as MatMulNBits requires: blocks of a power of two from 16, the last one padded.
func (o *BlockOptions) nbitsLayout(rows, cols int64, columnMajor bool) *spec.BlockLayout {
	size := int64(o.size())
	if size == 0 {
		size = 32 // blocks are required
	}
	// MatMulNBits pads the last block, so that blocks longer than the column would be padding for the most part.
	for size > 16 && size/2 >= rows {
		size /= 2
	}
	b := o.layout(rows, cols, size, true)
	b.DType, b.ForNBits, b.ColumnMajor, b.Transposed = ir.Uint8, true, columnMajor, !columnMajor
	b.Spec.Low, b.Spec.High, b.Spec.Block = 0, 1<<o.Bits-1, int(size)
	// ONNX Runtime supports float zero points for 4 bits only.
	b.FloatZeroPoints = o.usesNBits() && o.Algo == "hqq" && o.Bits == 4 && !o.Symmetric
	return b
}

// chooseBits picks MatMulNBits for the right operand of products that read the same columns, and for lookups of these;
// nil for other weights.
func (w *Quantizer) chooseBits(v *ir.Value, us []*weights.Use) *plan {
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.NBits}
	lookups := 0
	for _, u := range us {
		s := u.Consumer
		if s == nil || !s.StaysQuantized(v, ir.Float, ir.Float16) || len(s.Shape) != 2 ||
			s.Side != weights.Lookup && s.VectorActivation() || !sameMatrix(s, us[0].Consumer) {
			return nil
		}
		if s.Side == weights.Lookup {
			lookups++
		}
		p.Consumers = append(p.Consumers, s)
	}
	tied := lookups > 0 && lookups < len(us)
	s := us[0].Consumer
	// Tables without a product have lookups of their own form.
	if lookups == len(us) || !w.Blocks.usesNBits() && !w.prefersNBits(s) && !(tied && w.tiedNBits(v)) ||
		!weights.SameScope(v, p.Consumers) {
		return nil
	}
	if w.wide() {
		p.form = pass.WideNBits
	}
	b := w.Blocks.nbitsLayout(s.Matrix())
	b.FloatZeroPoints = b.FloatZeroPoints && !tied // a lookup has integers
	if b.FloatZeroPoints {
		p.note(pass.Reason{Code: pass.FloatZeroPoints})
	}
	p.encode(w, v, s.BaseShape(), b)
	return p
}

// sameMatrix reports whether a and b read the same columns of the weight.
func sameMatrix(a, b *weights.Consumer) bool {
	rows, cols, columnMajor := a.Matrix()
	r, c, m := b.Matrix()
	return rows == r && cols == c && columnMajor == m
}

// prefersNBits reports whether a product of s has MatMulNBits without a request: packed weights stay so in memory.
// Blocks of fewer rows than the smallest one would be padded.
func (w *Quantizer) prefersNBits(s *weights.Consumer) bool {
	rows, _, _ := s.Matrix()
	fast := w.fastNBits && (w.Blocks.Bits == 4 || w.wide())
	return fast && !w.Blocks.dequantizes() && w.Blocks.size() > 0 && rows >= minBlock && s.Elem == ir.Float
}

// wide reports whether products read 2-bit values in 4 bits: no version of ONNX Runtime has a fast MatMulNBits of 2
// bits, and the newest alone has a fast product after DequantizeLinear.
func (w *Quantizer) wide() bool {
	return w.Blocks.Bits == 2 && w.denseReason != "" && !w.Blocks.usesNBits()
}

// tiedNBits reports whether a weight of a product and of lookups has MatMulNBits without a request: the product is not
// slower than float, and with values of less than a byte no operators of ONNX read the same bytes in both.
func (w *Quantizer) tiedNBits(v *ir.Value) bool {
	if !w.nbits || w.Blocks.Bits == 8 || w.Blocks.size() == 0 || w.Blocks.dequantizes() {
		return false
	}
	return w.fused || w.Blocks.Bits == 4 && v.Const.Elems() >= pass.LargeWeight
}

// rowsInBytes is the layout of a table whose rows are whole bytes of quantized values, and of zero points; nil if they
// are not.
func (w *Quantizer) rowsInBytes(table *weights.Consumer) *spec.BlockLayout {
	rows, cols, columnMajor := table.Matrix()
	block := Divisor(rows, int64(w.Blocks.size()))
	b := w.Blocks.layout(rows, cols, block, true)
	b.DType, b.ForNBits, b.ColumnMajor, b.Transposed = ir.Uint8, true, columnMajor, !columnMajor
	b.Spec.Low, b.Spec.High = 0, 1<<b.Bits-1
	wholeBytes := func(n int64) bool { return n*int64(b.Bits)%8 == 0 }
	if !wholeBytes(int64(b.Spec.Block)) || b.HasZeroPoints() && !wholeBytes(b.NumBlocks()) {
		return nil
	}
	return b
}
