package engine

import "github.com/mcompress/mcompress/ir"

// Operators for the dynamic int8 pattern: one that quantizes its input, and one for an input that several products
// read.
var (
	quantizedMatMulID = ir.OpID{Domain: "mcompress", Type: "QuantizedMatMul"}
	integerToFloatID  = ir.OpID{Domain: "mcompress", Type: "MatMulIntegerToFloat"}
)

// fuseDynamicMatMul fuses the dynamic int8 pattern DynamicQuantizeLinear → MatMulInteger → Cast → Mul by the product of
// both scales (→ Add of a bias). Its results are bit-identical to those of the unfused operators. The
// DynamicQuantizeLinear of several products, such as those for queries, keys and values, is kept. i is the
// MatMulInteger.
func fuseDynamicMatMul(f *fusion, i int) bool {
	mm := f.p.steps[i]
	if !mm.is("MatMulInteger") || len(mm.in) < 3 {
		return false
	}
	dql, _ := f.producer(mm.in[0])
	w := f.constant(mm.in[1])
	// The weight must be constant and one matrix, so that it is packed once.
	if !dql.is("DynamicQuantizeLinear") || len(dql.out) != 3 || mm.in[2] == absent || mm.in[0] != dql.out[0] ||
		mm.in[2] != dql.out[2] || w == nil || len(w.Shape) != 2 {
		return false
	}
	cast, iCast := f.onlyConsumer(mm.out[0])
	if !cast.is("Cast") || cast.Int("to", 0) != int64(ir.Float) {
		return false
	}
	mul, iMul := f.onlyConsumer(cast.out[0])
	if !mul.is("Mul") {
		return false
	}
	both, _ := mul.otherInput(cast.out[0])
	scale := f.scaleOf(both, dql.out[1])
	if scale == absent {
		return false
	}
	zero := absent
	if len(mm.in) > 3 {
		zero = mm.in[3]
	}
	last, iLast, bias := mul, iMul, absent
	gone := []int{i, iCast, iMul}
	if add, iAdd := f.onlyConsumer(mul.out[0]); add.is("Add") {
		// A single element would be broadcast.
		if b, _ := add.otherInput(mul.out[0]); f.isRow(b) && f.constant(b).Elems() == w.Shape[1] {
			last, iLast, bias = add, iAdd, b
			gone = append(gone, iAdd)
		}
	}
	id, in := quantizedMatMulID, []int{dql.in[0], mm.in[1], scale, zero, bias}
	// One quantization serves all products that read it, such as those of queries, keys and values.
	if !f.consumedBy(dql.out[0], i) {
		id, in = integerToFloatID, []int{dql.out[0], mm.in[1], dql.out[1], scale, dql.out[2], zero, bias}
	}
	s := fused(id, 1, last, in, last.out)
	if s == nil {
		return false
	}
	f.replace(iLast, s, gone...)
	return true
}

// scaleOf is the constant factor of o besides xs, the activation's scale.
func (f *fusion) scaleOf(o, xs int) int {
	s, _ := f.producer(o)
	if !s.is("Mul") {
		return absent
	}
	w, _ := s.otherInput(xs)
	if f.constant(w) == nil {
		return absent
	}
	return w
}
