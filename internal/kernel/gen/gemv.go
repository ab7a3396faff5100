package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gemv adds multiples of rows to sums, several rows at once, so that sums are loaded and stored only once for all of
// them.
func gemv(rows int) {
	name := fmt.Sprintf("gemv%dAVX2", rows)
	function(name, "func(sums *float32, n int, a *float32, aK int, b *float32, bK int)",
		fmt.Sprintf("%s adds the products of %d elements of a and rows of b, in order; strides in bytes, n%%16 == 0, n "+
			"> 0.", name, rows))
	sums, n, a, aK := pointer("sums"), pointer("n"), pointer("a"), pointer("aK")
	b := tile{}.operand("b", "bK", rows)
	x := each(rows, func(int) VecVirtual {
		v := YMM()
		VBROADCASTSS(Mem{Base: a}, v)
		ADDQ(aK, a)
		return v
	})
	Label("sixteen")
	for i := range panelBytes / vector {
		s := YMM()
		VMOVUPS(at(sums, i), s)
		for r, v := range x {
			VFMADD231PS(b.at(r, i*vector), v, s)
		}
		VMOVUPS(s, at(sums, i))
	}
	advance(sums, panelBytes)
	for _, p := range b.base {
		advance(p, panelBytes)
	}
	SUBQ(U32(16), n)
	JNZ(LabelRef("sixteen"))
	finish()
}
