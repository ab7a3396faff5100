package engine

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

var (
	quantizedConvID    = ir.OpID{Domain: "mcompress", Type: "QuantizedConv"}
	quantizedAddID     = ir.OpID{Domain: "mcompress", Type: "QuantizedAdd"}
	quantizedMaxPoolID = ir.OpID{Domain: "mcompress", Type: "QuantizedMaxPool"}

	quantizedGlobalAveragePoolID = ir.OpID{Domain: "com.microsoft", Type: "QLinearGlobalAveragePool"}
)

// fuseQDQConv fuses DequantizeLinear → Conv → QuantizeLinear into a convolution with quantized input and output, so
// that activations between two of them take one byte per element. Its results are bit-identical to those of the unfused
// operators. i is the Conv.
func fuseQDQConv(f *fusion, i int) bool {
	conv := f.p.steps[i]
	// More inputs are a residual, which would be added in float32 before it is quantized.
	if !conv.is("Conv") && !conv.isOf(convID) || len(conv.in) > 3 || !f.isFloat(conv) ||
		len(f.weight(conv.in[1]).Shape) != 4 {
		return false
	}
	from, iFrom := f.producer(conv.in[0])
	to, iTo := f.onlyConsumer(conv.out[0])
	if !from.is("DequantizeLinear") || !f.isPerTensor8(from) {
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
	s := conv.with(quantizedConvID, in, to.out)
	if s == nil {
		return false
	}
	gone := []int{i, iTo}
	// Else the dequantized image is still computed for its other consumers.
	if f.consumedBy(conv.in[0], i) {
		gone = append(gone, iFrom)
	}
	f.replace(iTo, s, gone...)
	return true
}

// fuseQDQAdd fuses the addition of two dequantized images, an activation and QuantizeLinear into an addition of
// quantized values. Its results are bit-identical to those of the unfused operators. i is the Add.
func fuseQDQAdd(f *fusion, i int) bool {
	add := f.p.steps[i]
	// Bytes are added element by element, without broadcasting.
	if !add.is("Add") || !f.sameImage(add.in[0], add.in[1]) {
		return false
	}
	var in []int
	for _, o := range add.in {
		from, _ := f.producer(o)
		if !from.is("DequantizeLinear") || !f.isPerTensor8(from) {
			return false
		}
		in = append(in, from.in...)
	}
	gone, last := []int{i}, add.out[0]
	var attrs []*ir.Attr
	if act, iAct := f.onlyConsumer(last); act != nil {
		if attrs = f.activationAttrs(act); attrs != nil {
			gone, last = append(gone, iAct), act.out[0]
		}
	}
	to, iTo := f.onlyConsumer(last)
	if !to.is("QuantizeLinear") || !f.isPerTensor8(to) || to.in[0] != last {
		return false
	}
	s := fused(quantizedAddID, 1, add, append(in, to.in[1:]...), to.out, attrs...)
	if s == nil {
		return false
	}
	f.replace(iTo, s, append(gone, iTo)...)
	return true
}

// fuseQDQMaxPool fuses MaxPool of a dequantized image and QuantizeLinear with the same scale and zero point into the
// maximum of quantized values, which is the same: quantizing a dequantized value is exact. convolveIntegers gives it
// images with adjacent channels. i is the MaxPool.
func fuseQDQMaxPool(f *fusion, i int) bool {
	pool := f.p.steps[i]
	if !pool.is("MaxPool") || len(pool.Ints("kernel_shape")) != 2 || pool.Int("ceil_mode", 0) != 0 ||
		pool.HasConsumer(1) {
		return false
	}
	from, iFrom := f.producer(pool.in[0])
	to, iTo := f.onlyConsumer(pool.out[0])
	if !from.is("DequantizeLinear") || !f.isPerTensor8(from) || !to.is("QuantizeLinear") || !f.isPerTensor8(to) ||
		!f.sameQuantization(from, to) {
		return false
	}
	s := pool.with(quantizedMaxPoolID, from.in[:1], to.out)
	if s == nil {
		return false
	}
	gone := []int{i, iTo}
	if f.consumedBy(pool.in[0], i) {
		gone = append(gone, iFrom)
	}
	f.replace(iTo, s, gone...)
	return true
}

// fuseQDQGlobalAveragePool fuses GlobalAveragePool of a dequantized image and QuantizeLinear into the average of
// quantized values, whose sum is exact. Where both have the same scale many averages are halfway between two levels,
// and a sum of rounded float32 goes to the wrong one. i is the GlobalAveragePool.
func fuseQDQGlobalAveragePool(f *fusion, i int) bool {
	pool := f.p.steps[i]
	if !pool.is("GlobalAveragePool") {
		return false
	}
	from, iFrom := f.producer(pool.in[0])
	to, iTo := f.onlyConsumer(pool.out[0])
	if !from.is("DequantizeLinear") || !f.isPerTensor8(from) || !to.is("QuantizeLinear") || !f.isPerTensor8(to) ||
		f.constant(from.in[2]).DType != f.constant(to.in[2]).DType {
		return false
	}
	s := pool.with(quantizedGlobalAveragePoolID, append(slices.Clone(from.in), to.in[1:]...), to.out)
	if s == nil {
		return false
	}
	gone := []int{i, iTo}
	if f.consumedBy(pool.in[0], i) {
		gone = append(gone, iFrom)
	}
	f.replace(iTo, s, gone...)
	return true
}

// sameQuantization reports whether both steps have the same scale, of a size that makes dequantized values exact
// multiples, and zero point.
func (f *fusion) sameQuantization(a, b *step) bool {
	x, hasX := f.scalar(a.in[1])
	y, hasY := f.scalar(b.in[1])
	z, w := f.array(a.in[2]), f.array(b.in[2])
	// With subnormal or huge scales, value times scale is rounded or infinite, and its quotient is another level.
	return hasX && hasY && x == y && x > 1e-30 && x < 1e30 && z != nil && w != nil && z.DType == w.DType &&
		z.Data[0] == w.Data[0]
}

// fuseQuantizeCast removes a Cast of the result of QuantizeLinear to its own type. i is the Cast.
func fuseQuantizeCast(f *fusion, i int) bool {
	cast := f.p.steps[i]
	if !cast.is("Cast") || f.p.slots[cast.out[0]].keep {
		return false
	}
	q, _ := f.producer(cast.in[0])
	if !q.is("QuantizeLinear") || !f.isPerTensor8(q) || f.constant(q.in[2]).DType != ir.DType(cast.Int("to", 0)) {
		return false
	}
	for _, c := range f.consumers[cast.out[0]] {
		s := f.p.steps[c]
		// Steps that with made share the slice.
		s.in = slices.Clone(s.in)
		s.in[slices.Index(s.in, cast.out[0])] = q.out[0]
		f.consumers[q.out[0]] = append(f.consumers[q.out[0]], c)
	}
	f.unread(q.out[0], i)
	f.p.steps[i] = nil
	return true
}

// isPerTensor8 reports whether s, a QuantizeLinear or DequantizeLinear, converts between float32 and an 8-bit type with
// a constant per-tensor scale and zero point.
func (f *fusion) isPerTensor8(s *step) bool {
	if len(s.in) != 3 || s.Has("precision") || s.Has("output_dtype") {
		return false
	}
	scale, zero := f.constant(s.in[1]), f.constant(s.in[2])
	return scale != nil && zero != nil && scale.Elems() == 1 && zero.Elems() == 1 && scale.DType == ir.Float &&
		(zero.DType == ir.Int8 || zero.DType == ir.Uint8)
}
