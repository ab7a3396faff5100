package engine

import "github.com/mcompress/mcompress/ir"

// fuseCodes lets a convolution of images between DequantizeLinear and QuantizeLinear take codes and give codes, so
// that what lies between two of them takes a byte a value. Its numbers are those of the single operators, bit for
// bit. i is the Conv.
func fuseCodes(f *fusion, i int) bool {
	conv := f.p.steps[i]
	if !conv.is("Conv") && !conv.isOf(convID) || len(conv.in) > 3 || !f.isFloat(conv) || len(f.weight(conv.in[1]).Shape) != 4 {
		return false
	}
	from, iFrom := f.maker(conv.in[0])
	to, iTo := f.user(conv.out[0])
	if !from.is("DequantizeLinear") || !f.ofBytes(from) || !f.inside(conv.in[0], i) {
		return false
	}
	if !to.is("QuantizeLinear") || !f.ofBytes(to) || to.in[0] != conv.out[0] {
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

// ofBytes reports whether s, a QuantizeLinear or DequantizeLinear, is between float32 and codes of 8 bits by a
// constant scale and zero point for all of them.
func (f *fusion) ofBytes(s *step) bool {
	if len(s.in) != 3 || s.Has("precision") || s.Has("output_dtype") {
		return false
	}
	scale, zero := f.constant(s.in[1]), f.constant(s.in[2])
	return scale != nil && zero != nil && scale.Elems() == 1 && zero.Elems() == 1 && scale.DType == ir.Float && (zero.DType == ir.Int8 || zero.DType == ir.Uint8)
}
