package main

import (
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// requantize rounds after each step, like dequantizeInt32, and then like quantize.
func requantize(packOrder Mem) {
	function("requantizeAVX2", "func(dst *byte, sums *int32, n int, scale, bias *float32, offset, lo, hi int32)",
		"requantizeAVX2 quantizes one row; it expects the zero point minus the bits of roundShift as offset; n%8 == 0.")
	dst, sums, n, scale, bias := pointer("dst"), pointer("sums"), pointer("n"), pointer("scale"), pointer("bias")
	offset, c := spread("offset"), newCoder(packOrder)
	columns := []Register{sums, scale, bias}
	integers := func(i int) VecVirtual {
		v := YMM()
		VCVTDQ2PS(at(sums, i), v)
		c.scale(v, at(scale, i), at(bias, i), offset)
		return v
	}
	strips("wide", n, 32, func() {
		v := each(4, integers)
		for _, p := range columns {
			advance(p, 4*vector)
		}
		c.pack(v, dst)
	})
	strips("narrow", n, 8, func() {
		v := integers(0)
		for _, p := range columns {
			advance(p, vector)
		}
		c.pack8(v, dst)
	})
	finish()
}

// scale computes the quantized values of converted sums, not yet saturated.
func (c coder) scale(v VecVirtual, scale, bias Op, offset VecVirtual) {
	VMULPS(scale, v, v)
	VADDPS(bias, v, v)
	c.round(v)
	VPADDD(offset, v, v)
}

// roundingTable has the constants of rounding.
func roundingTable() Mem {
	each := func(v uint32) []uint32 { return slices.Repeat([]uint32{v}, 8) }
	return words("rounding", slices.Concat(each(floorBits), each(roundShift), each(0x00ff00ff),
		[]uint32{0, 4, 1, 5, 2, 6, 3, 7})...)
}

// rounding loads the table, and the parameters offset, and lo and hi, which are repeated in both halves.
func rounding(table Mem) (c coder, offset VecVirtual) {
	v := each(4, func(i int) VecVirtual {
		y := YMM()
		VMOVDQU(table.Offset(i*vector), y)
		return y
	})
	return coder{floor: v[0], shift: v[1], low8: v[2], order: v[3], lo: spread("lo"), hi: spread("hi")},
		spread("offset")
}

// requantizePairs multiplies like the tiles of pairs and requantizes the sums of four rows and a panel while they are
// in registers, which leave no place for the constants of the rounding before.
func requantizePairs() {
	const rows = 4
	t := tile{rows, 16, ymm, pairs}
	constants := roundingTable()
	function("requantizePairs4x16AVX2",
		"func(strips, quads int, a *byte, aRow int, b *byte, first *int32, firstRow int, dst *byte, to int, scale, bias "+
			"*float32, offset int32, lo, hi uint32)",
		"requantizePairs4x16AVX2 stores first+a·b as bytes, for strips of 4 rows; strides in bytes, strips and quads > 0.")
	strip, top, first, dst, quads, b := pointer("strips"), pointer("a"), pointer("first"), pointer("dst"), GP64(),
		GP64()
	a := t.operand("a", "aRow", rows)
	Label("strip")
	a.from(top)
	Load(Param("quads"), quads)
	Load(Param("b"), b)
	from := strided{[]GPVirtual{first, GP64()}, pointer("firstRow")}
	from.from(first)
	sums, multiply := make([][]VecVirtual, rows), multiplyPairs()
	for r := range sums {
		sums[r] = each(2, func(i int) VecVirtual {
			s := YMM()
			VMOVDQU(from.at(r, i*vector), s)
			return s
		})
	}
	LEAQ(Mem{Base: first, Index: from.stride, Scale: 4}, first)
	right := strided{[]GPVirtual{b}, nil}
	step := func() {
		t.step(a, right, sums, multiply)
		for _, p := range a.base {
			advance(p, 4)
		}
		advance(b, panelBytes)
	}
	strips("two", quads, 2, func() {
		step()
		step()
	})
	strips("one", quads, 1, step)
	c, offset := rounding(constants)
	scale, bias := pointer("scale"), pointer("bias")
	to := strided{[]GPVirtual{dst, GP64()}, pointer("to")}
	to.from(dst)
	for r := 0; r < rows; r += 2 {
		v := slices.Concat(sums[r], sums[r+1])
		for i, s := range v {
			VCVTDQ2PS(s, s)
			c.scale(s, at(scale, i%2), at(bias, i%2), offset)
		}
		both := c.join(v)
		VMOVDQU(both.AsX(), to.at(r, 0))
		VEXTRACTI128(U8(1), both, to.at(r+1, 0))
	}
	LEAQ(Mem{Base: dst, Index: to.stride, Scale: 4}, dst)
	LEAQ(Mem{Base: top, Index: a.stride, Scale: 4}, top)
	DECQ(strip)
	JNZ(LabelRef("strip"))
	finish()
}
