package weightonly

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// nbitsLayout divides a matrix as MatMulNBits requires: blocks of a power of two from 16, the last one padded.
func (o *BlockOptions) nbitsLayout(rows, cols int64, lying bool) *spec.BlockLayout {
	size := int64(o.size())
	if size == 0 {
		size = 32 // blocks are required
	}
	for size > 16 && size/2 >= rows {
		size /= 2
	}
	b := o.layout(rows, cols, size, true)
	b.DType, b.ForNBits, b.ColumnMajor, b.Transposed = ir.Uint8, true, lying, !lying
	b.Spec.Low, b.Spec.High, b.Spec.Block = 0, 1<<o.Bits-1, int(size)
	// ONNX Runtime supports float zero points for 4 bits only.
	b.FloatZeroPoints = o.Algo == "hqq" && o.Bits == 4 && !o.Symmetric
	return b
}

// chooseBits picks MatMulNBits for a right operand of products that see it in one orientation; nil for other weights.
func (w *Quantizer) chooseBits(v *ir.Value, us []*weights.Use) *plan {
	if !w.Blocks.usesNBits() {
		return nil
	}
	p := &plan{Weight: &weights.Weight{Base: v}, form: pass.NBits}
	for _, u := range us {
		if u.Consumer == nil || u.Consumer.Side == weights.Lookup || !u.Consumer.StaysQuantized(v, ir.Float, ir.Float16) || u.Consumer.Transposed != us[0].Consumer.Transposed || u.Consumer.VectorActivation() {
			return nil
		}
		p.Consumers = append(p.Consumers, u.Consumer)
	}
	if !weights.SameScope(v, p.Consumers) {
		return nil
	}
	s := p.Consumers[0]
	b := w.Blocks.nbitsLayout(s.Shape[0], s.Shape[1], s.Transposed)
	if b.FloatZeroPoints {
		p.note(pass.Reason{Code: pass.FloatZeroPoints})
	}
	p.encode(w, v, s.BaseShape(), b)
	return p
}
