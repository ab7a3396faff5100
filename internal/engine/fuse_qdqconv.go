package engine

import "github.com/mcompress/mcompress/ir"

// fuseQDQConv fuses DequantizeLinear → Conv → QuantizeLinear into a convolution with quantized input and output, so that activations
// between two of them take one byte per element. Its results are bit-identical to those of the unfused operators. i is the Conv.
func fuseQDQConv(f *fusion, i int) bool {
	conv := f.p.steps[i]
	if !conv.is("Conv") && !conv.isOf(convID) || len(conv.in) > 3 || !f.isFloat(conv) || len(f.weight(conv.in[1]).Shape) != 4 {
		return false
	}
	from, iFrom := f.producer(conv.in[0])
	to, iTo := f.onlyConsumer(conv.out[0])
	if !from.is("DequantizeLinear") || !f.isPerTensor8(from) || !f.consumedBy(conv.in[0], i) {
		return false
	}
	if !to.is("QuantizeLinear") || !f.isPerTensor8(to) || to.in[0] != conv.out[0] {
		return false
	}
	bias := absent
	if len(conv.in) > 2 {
		bias = conv.in[2]
	}
	in := []int{from.in[0], conv.in[1], bias, from.in[1], from.in[2], to.in[1], to.in[2]}
	s := conv.with(ir.OpID{Domain: "mcompress", Type: "QuantizedConv"}, in, to.out)
	if s == nil {
		return false
	}
	f.replace(iTo, s, iFrom, i, iTo)
	return true
}

// isPerTensor8 reports whether s, a QuantizeLinear or DequantizeLinear, converts between float32 and an 8-bit type with a constant
// per-tensor scale and zero point.
func (f *fusion) isPerTensor8(s *step) bool {
	if len(s.in) != 3 || s.Has("precision") || s.Has("output_dtype") {
		return false
	}
	scale, zero := f.constant(s.in[1]), f.constant(s.in[2])
	return scale != nil && zero != nil && scale.Elems() == 1 && zero.Elems() == 1 && scale.DType == ir.Float && (zero.DType == ir.Int8 || zero.DType == ir.Uint8)
}
