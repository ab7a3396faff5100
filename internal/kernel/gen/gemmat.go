package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gemmAt multiplies strips of six rows by a panel of 16 columns; elements of a row are at the offsets of a table.
func gemmAt() {
	function("gemmAt6x16AVX2", "func(strips int, x *float32, row int, at *int64, k int, b *float32, c *float32, cRow int)",
		"gemmAt6x16AVX2 adds products to c; strides in bytes; strips and k > 0.")
	t := tile{6, 16, ymm, floats}
	x, c, strips := t.operand("x", "row", t.rows), t.operand("c", "cRow", t.rows), pointer("strips")
	offsets, b, k, off := GP64(), GP64(), GP64(), GP64()
	Label("strip")
	Load(Param("at"), offsets)
	Load(Param("b"), b)
	Load(Param("k"), k)
	sums, multiply := t.zeros(), t.numbers.multiplier()
	t.touch(c)
	Label("step")
	MOVQ(Mem{Base: offsets}, off)
	a := strided{stride: x.stride}
	for _, base := range x.base {
		p := GP64()
		LEAQ(Mem{Base: base, Index: off, Scale: 4}, p)
		a.base = append(a.base, p)
	}
	t.step(a, strided{base: []GPVirtual{b}}, sums, multiply)
	advance(offsets, 8)
	advance(b, panelBytes)
	DECQ(k)
	JNZ(LabelRef("step"))
	for r, row := range sums {
		for i, s := range row {
			VADDPS(c.at(r, i*vector), s, s)
			VMOVUPS(s, c.at(r, i*vector))
		}
	}
	for _, s := range []strided{x, c} {
		LEAQ(Mem{Base: s.base[1], Index: s.stride, Scale: 2}, s.base[0])
		ADDQ(s.stride, s.base[0])
		s.from(s.base[0])
	}
	DECQ(strips)
	JNZ(LabelRef("strip"))
	finish()
}
