package engine

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// fuseUnpackBits fuses Cast → Reshape to a column → Div by powers of two → Mod → Reshape to a vector, which unpacks
// integers of 1, 2 or 4 bits from constant bytes in forms of sparse and quantized weights. i is the Mod.
func fuseUnpackBits(f *fusion, i int) bool {
	mod := f.p.steps[i]
	if !mod.is("Mod") || len(mod.in) != 2 || mod.Int("fmod", 0) != 0 {
		return false
	}
	div, iDiv := f.producer(mod.in[0])
	if !div.is("Div") || !f.consumedBy(div.out[0], i) {
		return false
	}
	column, iColumn := f.producer(div.in[0])
	if !f.isReshape(column, -1, 1) || !f.consumedBy(column.out[0], iDiv) {
		return false
	}
	cast, iCast := f.producer(column.in[0])
	if !cast.is("Cast") || cast.Int("to", 0) != int64(ir.Int32) || !f.consumedBy(cast.out[0], iColumn) {
		return false
	}
	x, bits := f.constant(cast.in[0]), f.fieldBits(div.in[1], mod.in[1])
	vector, iVector := f.onlyConsumer(mod.out[0])
	// A weight only: activations are not stored in bits.
	if x == nil || x.DType != ir.Uint8 || len(x.Shape) != 1 || bits == 0 || !f.isReshape(vector, -1) {
		return false
	}
	s := fused(ir.OpID{Domain: "mcompress", Type: "UnpackBits"}, 1, vector, []int{cast.in[0]}, vector.out,
		intAttr("bits", bits))
	if s == nil {
		return false
	}
	f.replace(iVector, s, i, iDiv, iColumn, iCast, iVector)
	return true
}

// isReshape reports whether s reshapes to this constant shape.
func (f *fusion) isReshape(s *step, shape ...int64) bool {
	if !s.is("Reshape") || len(s.in) != 2 {
		return false
	}
	a := f.array(s.in[1])
	return a != nil && a.DType == ir.Int64 && slices.Equal(ir.View[int64](a), shape)
}

// fieldBits is the number of bits of integers that division by the constants in one slot and the remainder by that in
// another one unpack from a byte, 0 if they do not.
func (f *fusion) fieldBits(divisors, modulus int) int64 {
	d, m := f.array(divisors), f.array(modulus)
	if d == nil || m == nil || d.DType != ir.Int32 || m.DType != ir.Int32 || len(d.Shape) != 1 || m.Elems() != 1 ||
		len(m.Shape) > 1 {
		return 0
	}
	for _, bits := range []int64{1, 2, 4} {
		var want []int32
		for at := int64(0); at < 8; at += bits {
			want = append(want, 1<<at)
		}
		if slices.Equal(ir.View[int32](d), want) && ir.View[int32](m)[0] == 1<<bits {
			return bits
		}
	}
	return 0
}
